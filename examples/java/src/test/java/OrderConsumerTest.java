import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class OrderConsumerTest {
    /** Have records in the topic. */
    private static void produce(ShareBroker broker, String... values) {
        Map<String, Object> settings =
            Map.of("bootstrap.servers", broker.bootstrapServers);
        var serializer = new StringSerializer();
        try (var producer = new KafkaProducer<>(settings, serializer, serializer)) {
            for (String value : values) {
                producer.send(new ProducerRecord<>("orders", value));
            }
        }
    }

    @Test
    void eachOrderIsTakenOnce() throws Exception {
        try (var broker = new ShareBroker();
                var consumer = new OrderConsumer(broker.bootstrapServers, "shop")) {
            produce(broker, "1", "2", "3");
            while (consumer.orders.size() < 3) {
                consumer.take(consumer.poll());
            }

            assertEquals(List.of(1, 2, 3), consumer.orders);
            assertEquals("{\"ok\":[]}", broker.ask("{\"not_done\": {}}"));
        }
    }

    @Test
    void anOrderWhoseLockHasExpiredComesAgain() throws Exception {
        try (var broker = new ShareBroker("--standing-clock");
                var slow = new OrderConsumer(broker.bootstrapServers, "shop")) {
            produce(broker, "1");
            var orders = slow.poll();
            broker.advance(Duration.ofSeconds(31)); // takes a moment
            slow.take(orders); // its lock has expired: somebody may have it already, this consumer too
            var order = slow.poll().iterator().next();

            assertEquals(Optional.of((short) 2), order.deliveryCount());
        }
    }

    @Test
    void whatIsNoOrderIsGivenUpAtTheLimit() throws Exception {
        try (var broker = new ShareBroker("--set", "group.share.delivery.count.limit=2");
                var consumer = new OrderConsumer(broker.bootstrapServers, "shop")) {
            produce(broker, "one");
            consumer.take(consumer.poll());
            consumer.take(consumer.poll());

            String record = "{\"topic\": \"orders\", \"partition\": 0, \"offset\": 0}";
            String life = broker.ask("{\"explain\": " + record + "}");
            assertTrue(life.contains("ARCHIVED at the limit after 2 deliveries"), life);
        }
    }
}
