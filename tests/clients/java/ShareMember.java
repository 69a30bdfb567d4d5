import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Kafka's own share consumer, told what to do by lines of JSON; each is answered by one. */
public final class ShareMember {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final KafkaShareConsumer<String, String> consumer;
    private final List<Map<String, Object>> commits = new ArrayList<>();
    private final Map<String, ConsumerRecord<String, String>> held = new HashMap<>();

    private ShareMember(JsonNode config) {
        Properties properties = new Properties();
        config.properties().forEach(each -> properties.put(each.getKey(), each.getValue().asText()));
        consumer = new KafkaShareConsumer<>(properties, new StringDeserializer(), new StringDeserializer());
        consumer.setAcknowledgementCommitCallback((offsets, error) -> offsets.forEach((partition, some) -> {
            Map<String, Object> commit = new TreeMap<>();
            commit.put("partition", partition.partition());
            commit.put("offsets", some.stream().sorted().toList());
            commit.put("error", name(error));
            commits.add(commit);
        }));
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        ShareMember member = new ShareMember(JSON.readTree(lines.readLine()));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(JSON.writeValueAsString(member.answer(JSON.readTree(line))));
        }
        member.consumer.close();
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
            case "subscribe" -> consumer.subscribe(JSON.convertValue(asked.get("topics"), List.class));
            case "poll" -> {
                List<Map<String, Object>> records = new ArrayList<>();
                consumer.poll(Duration.ofMillis(asked.get("ms").asLong())).forEach(each -> {
                    held.put(each.partition() + " " + each.offset(), each);
                    records.add(told(each));
                });
                answer.put("records", records);
            }
            case "acknowledge" -> consumer.acknowledge(
                    held.get(asked.get("partition").asInt() + " " + asked.get("offset").asLong()),
                    AcknowledgeType.valueOf(asked.get("type").asText()));
            case "commit" -> {
                Map<Integer, Object> errors = new TreeMap<>();
                Map<TopicIdPartition, Optional<KafkaException>> results = consumer.commitSync(Duration.ofSeconds(30));
                results.forEach((partition, error) -> errors.put(partition.partition(), name(error.orElse(null))));
                answer.put("errors", errors);
            }
            case "lock timeout" -> answer.put("ms", consumer.acquisitionLockTimeoutMs().orElse(null));
            case "commits" -> {
                answer.put("commits", new ArrayList<>(commits));
                commits.clear();
            }
            case "close" -> consumer.close();
            default -> throw new IllegalArgumentException(asked.toString());
        }
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
