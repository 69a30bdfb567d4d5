import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.ShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Takes orders; one that it cannot read goes back to the broker, which offers it again. */
public final class OrderConsumer implements AutoCloseable {
    public final List<Integer> orders = new ArrayList<>();
    private final ShareConsumer<String, String> consumer;

    public OrderConsumer(String bootstrapServers, String groupId) {
        consumer = new KafkaShareConsumer<>(
            Map.of(
                "bootstrap.servers", bootstrapServers,
                "group.id", groupId,
                "share.acknowledgement.mode", "explicit"),
            new StringDeserializer(),
            new StringDeserializer());
        consumer.subscribe(List.of("orders"));
    }

    /** Returns the next records. */
    public ConsumerRecords<String, String> poll() {
        ConsumerRecords<String, String> records;
        do {
            records = consumer.poll(Duration.ofMillis(100));
        } while (records.isEmpty());
        return records;
    }

    /** Does what is to be done with records, and acknowledges them. */
    public void take(ConsumerRecords<String, String> records) {
        for (ConsumerRecord<String, String> record : records) {
            boolean isOrder = record.value().matches("[0-9]{1,9}");
            if (isOrder) {
                orders.add(Integer.valueOf(record.value()));
            }
            consumer.acknowledge(record, isOrder ? AcknowledgeType.ACCEPT : AcknowledgeType.RELEASE);
        }
        consumer.commitSync();
    }

    @Override
    public void close() {
        consumer.close();
    }
}
