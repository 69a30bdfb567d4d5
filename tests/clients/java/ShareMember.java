import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Kafka's own share consumers, one after the other in one JVM, told what to do by lines of JSON; each is answered by one.
 */
public final class ShareMember {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final List<Map<String, Object>> commits = new ArrayList<>();
    private final Map<String, ConsumerRecord<String, String>> held = new HashMap<>();
    private KafkaShareConsumer<String, String> consumer;

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err); // where what is logged goes
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        ShareMember member = new ShareMember();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            answers.println(JSON.writeValueAsString(member.answer(JSON.readTree(line))));
        }
    }

    private Map<String, Object> answer(JsonNode asked) {
        Map<String, Object> answer = new TreeMap<>();
        try {
            act(asked, answer);
        } catch (KafkaException | IllegalStateException | IllegalArgumentException error) {
            answer.put("error", error.getClass().getSimpleName());
        }
        return answer;
    }

    private void act(JsonNode asked, Map<String, Object> answer) {
        switch (asked.get("do").asText()) {
            case "open" -> open(asked);
            case "subscribe" -> consumer.subscribe(JSON.convertValue(asked.get("topics"), List.class));
            case "unsubscribe" -> consumer.unsubscribe();
            case "subscription" -> answer.put("topics", consumer.subscription().stream().sorted().toList());
            case "poll" -> {
                if (asked.has("wakeup")) {
                    wakeUp(asked.get("wakeup").asLong());
                }
                List<Map<String, Object>> records = new ArrayList<>();
                consumer.poll(Duration.ofMillis(asked.get("ms").asLong())).forEach(each -> {
                    held.put(each.partition() + " " + each.offset(), each);
                    records.add(told(each));
                });
                answer.put("records", records);
            }
            case "acknowledge" -> {
                int partition = asked.get("partition").asInt();
                long offset = asked.get("offset").asLong();
                AcknowledgeType type = AcknowledgeType.valueOf(asked.get("type").asText());
                if (asked.has("topic")) {
                    consumer.acknowledge(asked.get("topic").asText(), partition, offset, type);
                } else {
                    consumer.acknowledge(held.get(partition + " " + offset), type);
                }
            }
            case "commit" -> {
                Map<Integer, Object> errors = new TreeMap<>();
                Map<TopicIdPartition, Optional<KafkaException>> results = consumer.commitSync(Duration.ofSeconds(30));
                results.forEach((partition, error) -> errors.put(partition.partition(), name(error.orElse(null))));
                answer.put("errors", errors);
            }
            case "commit async" -> consumer.commitAsync();
            case "lock timeout" -> answer.put("ms", consumer.acquisitionLockTimeoutMs().orElse(null));
            case "commits" -> {
                answer.put("commits", new ArrayList<>(commits));
                commits.clear();
            }
            case "close" -> consumer.close();
            default -> throw new IllegalArgumentException(asked.toString());
        }
    }

    private void open(JsonNode asked) {
        Properties properties = new Properties();
        asked.get("config").properties().forEach(each -> properties.put(each.getKey(), each.getValue().asText()));
        String spoiled = asked.get("spoiled").asText();
        StringDeserializer strings = new StringDeserializer();
        consumer = new KafkaShareConsumer<>(properties, strings, (topic, data) -> {
            String value = strings.deserialize(topic, data);
            if (spoiled.equals(value)) {
                throw new SerializationException(value);
            }
            return value;
        });
        commits.clear();
        held.clear();
        consumer.setAcknowledgementCommitCallback((offsets, error) -> offsets.forEach((partition, some) -> {
            Map<String, Object> commit = new TreeMap<>();
            commit.put("partition", partition.partition());
            commit.put("offsets", some.stream().sorted().toList());
            commit.put("error", name(error));
            commits.add(commit);
        }));
    }

    /** Call {@code wakeup}, which alone may be called from another thread, after so many milliseconds. */
    private void wakeUp(long ms) {
        KafkaShareConsumer<String, String> asleep = consumer;
        CompletableFuture.delayedExecutor(ms, TimeUnit.MILLISECONDS).execute(asleep::wakeup);
    }

    private static Map<String, Object> told(ConsumerRecord<String, String> record) {
        Map<String, Object> told = new TreeMap<>();
        told.put("topic", record.topic());
        told.put("partition", record.partition());
        told.put("offset", record.offset());
        told.put("value", record.value());
        told.put("count", record.deliveryCount().map(Short::intValue).orElse(null));
        return told;
    }

    private static String name(Throwable error) {
        return error == null ? null : error.getClass().getSimpleName();
    }
}
