package org.apache.kafka.coordinator.group;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AlterShareGroupOffsetsRequestData;
import org.apache.kafka.common.message.DeleteShareGroupOffsetsRequestData;
import org.apache.kafka.common.message.DeleteShareGroupOffsetsResponseData;
import org.apache.kafka.common.message.ShareGroupHeartbeatRequestData;
import org.apache.kafka.common.message.ShareGroupHeartbeatResponseData;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.MockCoordinatorTimer;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.generated.CoordinatorRecordJsonConverters;
import org.apache.kafka.coordinator.group.modern.share.ShareGroup;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateParameters;

/** Driver around a real GroupMetadataManager, for share groups. */
public final class GroupDriver {
    private static final boolean STACK_TRACES = System.getenv("TRACE") != null;
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final GroupCoordinatorRecordSerde SERDE = new GroupCoordinatorRecordSerde();

    private final List<Object> records = new ArrayList<>();
    private final Set<String> groups = new TreeSet<>();
    private GroupContext context;
    private MetadataImage image = MetadataImage.EMPTY;
    private long version = 0;

    private GroupDriver() { }

    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(
            new BufferedOutputStream(new FileOutputStream(FileDescriptor.out), 1 << 16), false, StandardCharsets.UTF_8);
        System.setOut(System.err); // stdout is for responses only
        GroupDriver driver = new GroupDriver();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.isBlank())
                continue;
            out.println(JSON.writeValueAsString(driver.handle(JSON.readTree(line))));
            if (!in.ready())
                out.flush();
        }
        out.flush();
    }

    private Map<String, Object> handle(JsonNode request) {
        records.clear();
        Object result;
        try {
            result = run(request);
            context.commit();
        } catch (Throwable t) {
            if (context != null)
                context.revert();
            if (STACK_TRACES)
                t.printStackTrace();
            Map<String, Object> error = new LinkedHashMap<>();
            error.put("error", Errors.forException(t).name());
            error.put("exception", t.getClass().getSimpleName());
            error.put("message", t.getMessage());
            result = Map.of("raised", error);
        }
        Map<String, Object> response = new LinkedHashMap<>();
        response.put("result", result);
        response.put("records", records);
        response.put("state", context == null || request.path("quiet").asBoolean() ? null : state());
        return response;
    }

    private Object run(JsonNode request) {
        String group = request.path("group").asText();
        if (request.has("group"))
            groups.add(group);
        return switch (request.path("op").asText()) {
            case "open" -> {
                groups.clear();
                image = MetadataImage.EMPTY;
                change(request);
                Map<String, Object> config = new HashMap<>();
                request.path("config").properties().forEach(entry -> config.put(entry.getKey(), entry.getValue().asText()));
                context = new GroupContext(config, new KRaftCoordinatorMetadataImage(image), new SimpleAssignor(), new GroupContext.Clock());
                yield null;
            }
            case "heartbeat" -> {
                ShareGroupHeartbeatRequestData heartbeat = new ShareGroupHeartbeatRequestData()
                    .setGroupId(group).setMemberId(request.path("member").asText()).setMemberEpoch(request.path("epoch").asInt())
                    .setRackId(request.path("rack").isTextual() ? request.path("rack").asText() : null);
                if (request.path("topics").isArray()) {
                    List<String> names = new ArrayList<>();
                    request.path("topics").forEach(name -> names.add(name.asText()));
                    heartbeat.setSubscribedTopicNames(names);
                } else {
                    heartbeat.setSubscribedTopicNames(null);
                }
                var result = context.shareGroupHeartbeat(heartbeat);
                tell(result.records());
                ShareGroupHeartbeatResponseData response = result.response().getKey();
                Map<String, Object> json = new LinkedHashMap<>();
                json.put("error", Errors.forCode(response.errorCode()).name());
                json.put("member", response.memberId());
                json.put("epoch", response.memberEpoch());
                json.put("interval", response.heartbeatIntervalMs());
                Map<String, Object> assignment = response.assignment() == null ? null : new TreeMap<>();
                if (assignment != null)
                    response.assignment().topicPartitions().forEach(topic -> assignment.put(topic.topicId().toString(), new TreeSet<>(topic.partitions())));
                json.put("assignment", assignment);
                json.put("initialize", initialize(result.response().getValue()));
                yield json;
            }
            case "initialized" -> tell(replayed(context.groupMetadataManager.initializeShareGroupState(group, partitions(request)).records()));
            case "uninitialized" -> tell(replayed(context.groupMetadataManager.uninitializeShareGroupState(group, partitions(request)).records()));
            case "metadata" -> {
                MetadataDelta delta = change(request);
                GroupRelease.update(context.groupMetadataManager, new KRaftCoordinatorMetadataDelta(delta), new KRaftCoordinatorMetadataImage(image));
                Set<Uuid> deleted = delta.topicsDelta() == null ? Set.of() : delta.topicsDelta().deletedTopicIds();
                if (!deleted.isEmpty() && request.path("cleanup").asBoolean(true))
                    tell(replayed(context.groupMetadataManager.maybeCleanupShareGroupState(deleted).records()));
                yield null;
            }
            case "advance" -> {
                List<Object> expired = new ArrayList<>();
                // One deadline after the other: the test context replays only when it has run all that are due.
                long end = context.time.milliseconds() + request.path("ms").asLong();
                while (true) {
                    long next = Math.min(end, Math.max(deadline(), context.time.milliseconds()));
                    context.sleep(next - context.time.milliseconds(), (key, made) -> {
                        expired.add(key);
                        tell(made);
                    });
                    if (next == end)
                        break;
                }
                yield expired;
            }
            case "tasks" -> {
                List<Object> done = new ArrayList<>();
                context.processTasks().forEach(task -> {
                    done.add(task.key());
                    tell(task.result().records());
                });
                yield done;
            }
            case "alter" -> {
                var topics = new AlterShareGroupOffsetsRequestData.AlterShareGroupOffsetsRequestTopicCollection();
                request.path("topics").properties().forEach(entry -> {
                    var topic = new AlterShareGroupOffsetsRequestData.AlterShareGroupOffsetsRequestTopic().setTopicName(entry.getKey());
                    entry.getValue().forEach(pair -> topic.partitions().add(new AlterShareGroupOffsetsRequestData.AlterShareGroupOffsetsRequestPartition()
                        .setPartitionIndex(pair.get(0).asInt()).setStartOffset(pair.get(1).asLong())));
                    topics.add(topic);
                });
                var result = context.groupMetadataManager.alterShareGroupOffsets(group, topics);
                tell(replayed(result.records()));
                Map<String, Object> json = new LinkedHashMap<>();
                Map<String, Object> answers = new TreeMap<>();
                result.response().getKey().responses().forEach(topic -> answers.put(topic.topicName(), topic.partitions().stream()
                    .map(partition -> List.of(partition.partitionIndex(), Errors.forCode(partition.errorCode()).name())).toList()));
                json.put("topics", answers);
                json.put("initialize", initialize(Optional.ofNullable(result.response().getValue())));
                yield json;
            }
            case "delete_offsets" -> {
                DeleteShareGroupOffsetsRequestData data = new DeleteShareGroupOffsetsRequestData().setGroupId(group);
                request.path("topics").forEach(name -> data.topics().add(
                    new DeleteShareGroupOffsetsRequestData.DeleteShareGroupOffsetsRequestTopic().setTopicName(name.asText())));
                List<DeleteShareGroupOffsetsResponseData.DeleteShareGroupOffsetsResponseTopic> errors = new ArrayList<>();
                List<CoordinatorRecord> made = new ArrayList<>();
                var eligible = context.groupMetadataManager.sharePartitionsEligibleForOffsetDeletion(group, data, errors, made);
                tell(replayed(made));
                Map<String, Object> json = new LinkedHashMap<>();
                json.put("errors", errors.stream().map(topic -> List.of(topic.topicName(), Errors.forCode(topic.errorCode()).name())).toList());
                Map<String, Object> delete = new TreeMap<>();
                eligible.forEach(topic -> delete.put(topic.topicId().toString(), new TreeSet<>(topic.partitions().stream().map(partition -> partition.partition()).toList())));
                json.put("delete", delete);
                yield json;
            }
            case "deleted_offsets" -> {
                List<CoordinatorRecord> made = new ArrayList<>();
                Map<Uuid, String> names = new HashMap<>();
                request.path("topics").properties().forEach(entry -> names.put(Uuid.fromString(entry.getKey()), entry.getValue().asText()));
                var answers = context.groupMetadataManager.completeDeleteShareGroupOffsets(group, names, made);
                tell(replayed(made));
                yield answers.stream().map(topic -> List.of(topic.topicName(), Errors.forCode(topic.errorCode()).name())).toList();
            }
            case "delete_state" -> {
                List<CoordinatorRecord> made = new ArrayList<>();
                var parameters = context.groupMetadataManager.shareGroupBuildPartitionDeleteRequest(group, made);
                tell(replayed(made));
                Map<String, Object> delete = new TreeMap<>();
                parameters.ifPresent(some -> some.groupTopicPartitionData().topicsData().forEach(topic ->
                    delete.put(topic.topicId().toString(), new TreeSet<>(topic.partitions().stream().map(partition -> partition.partition()).toList()))));
                yield parameters.isEmpty() ? null : delete;
            }
            case "delete_group" -> {
                context.groupMetadataManager.group(group).validateDeleteGroup();
                List<CoordinatorRecord> made = new ArrayList<>();
                context.groupMetadataManager.createGroupTombstoneRecordsAndCancelTimers(group, made);
                tell(replayed(made));
                yield null;
            }
            case "describe" -> {
                List<Object> list = new ArrayList<>();
                context.sendShareGroupDescribe(List.of(group)).forEach(described -> list.add(JSON.valueToTree(described.toString()).asText()));
                yield list;
            }
            case "reload" -> {
                context = context.reloaded(new KRaftCoordinatorMetadataImage(image));
                yield null;
            }
            case "state" -> null;
            default -> throw new IllegalArgumentException("op: " + request.path("op").asText());
        };
    }

    /** The earliest deadline of a timer. */
    private long deadline() {
        try {
            var field = MockCoordinatorTimer.class.getDeclaredField("timeoutQueue");
            field.setAccessible(true);
            long earliest = Long.MAX_VALUE;
            for (Object timeout : (Iterable<?>) field.get(context.timer)) {
                var method = timeout.getClass().getDeclaredMethod("deadlineMs"); // a record in 4.3
                method.setAccessible(true);
                earliest = Math.min(earliest, (long) method.invoke(timeout));
            }
            return earliest;
        } catch (NoSuchMethodException e) {
            return Long.MAX_VALUE;
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private MetadataDelta change(JsonNode request) {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
        request.path("topics").properties().forEach(entry -> {
            Uuid id = Uuid.fromString(entry.getValue().get(0).asText());
            var known = image.topics().getTopic(id);
            if (known == null)
                delta.replay(new TopicRecord().setTopicId(id).setName(entry.getKey()));
            for (int partition = known == null ? 0 : known.partitions().size(); partition < entry.getValue().get(1).asInt(); partition++)
                delta.replay(new PartitionRecord().setTopicId(id).setPartitionId(partition).setReplicas(List.of(0)));
        });
        request.path("delete").forEach(name -> delta.replay(new RemoveTopicRecord().setTopicId(image.topics().getTopic(name.asText()).id())));
        image = delta.apply(new MetadataProvenance(++version, 0, 0L, true));
        return delta;
    }

    private static Map<Uuid, Set<Integer>> partitions(JsonNode request) {
        Map<Uuid, Set<Integer>> map = new HashMap<>();
        request.path("topics").properties().forEach(entry -> {
            Set<Integer> set = new HashSet<>();
            entry.getValue().forEach(partition -> set.add(partition.asInt()));
            map.put(Uuid.fromString(entry.getKey()), set);
        });
        return map;
    }

    private static Object initialize(Optional<InitializeShareGroupStateParameters> parameters) {
        if (parameters.isEmpty())
            return null;
        Map<String, Object> json = new TreeMap<>();
        parameters.get().groupTopicPartitionData().topicsData().forEach(topic -> {
            TreeMap<Integer, Object> partitions = new TreeMap<>();
            topic.partitions().forEach(partition -> partitions.put(partition.partition(), List.of(partition.partition(), partition.stateEpoch(), partition.startOffset())));
            json.put(topic.topicId().toString(), new ArrayList<>(partitions.values()));
        });
        return json;
    }

    private List<CoordinatorRecord> replayed(List<CoordinatorRecord> made) {
        made.forEach(context::replay);
        return made;
    }

    private Object tell(List<CoordinatorRecord> made) {
        for (CoordinatorRecord record : made) {
            Map<String, Object> json = new LinkedHashMap<>();
            json.put("type", record.key().apiKey());
            json.put("key", CoordinatorRecordJsonConverters.writeRecordKeyAsJson(record.key()));
            json.put("value", record.value() == null ? null : CoordinatorRecordJsonConverters.writeRecordValueAsJson(record.value().message(), record.value().version()));
            byte[] value = SERDE.serializeValue(record);
            json.put("raw", List.of(Base64.getEncoder().encodeToString(SERDE.serializeKey(record)), value == null ? "" : Base64.getEncoder().encodeToString(value)));
            records.add(json);
        }
        return null;
    }

    private Object state() {
        Map<String, Object> all = new LinkedHashMap<>();
        all.put("now", context.time.milliseconds());
        Map<String, Object> list = new TreeMap<>();
        for (String id : groups) {
            ShareGroup group;
            try {
                group = context.groupMetadataManager.shareGroup(id);
            } catch (RuntimeException e) {
                continue;
            }
            Map<String, Object> json = new LinkedHashMap<>();
            json.put("state", group.stateAsString());
            json.put("epoch", group.groupEpoch());
            json.put("assignment_epoch", group.assignmentEpoch());
            json.put("metadata_hash", group.metadataHash());
            Map<String, Object> members = new TreeMap<>();
            group.members().forEach((name, member) -> {
                Map<String, Object> one = new LinkedHashMap<>();
                one.put("epoch", member.memberEpoch());
                one.put("previous_epoch", member.previousMemberEpoch());
                one.put("topics", new TreeSet<>(member.subscribedTopicNames()));
                one.put("assigned", sorted(member.assignedPartitions()));
                one.put("target", sorted(group.targetAssignment(name).partitions()));
                members.put(name, one);
            });
            json.put("members", members);
            var info = context.groupMetadataManager.shareGroupStatePartitionMetadata().get(id);
            if (info == null) {
                json.put("partitions", null);
            } else {
                Map<String, Object> one = new LinkedHashMap<>();
                one.put("initializing", infos(info.initializingTopics()));
                one.put("initialized", infos(info.initializedTopics()));
                one.put("deleting", new TreeSet<>(info.deletingTopics().stream().map(Uuid::toString).toList()));
                json.put("partitions", one);
            }
            list.put(id, json);
        }
        all.put("groups", list);
        return all;
    }

    private static Map<String, Object> infos(Map<Uuid, ShareGroup.InitMapValue> map) {
        Map<String, Object> json = new TreeMap<>();
        map.forEach((id, value) -> json.put(id.toString(), List.of(value.name(), new TreeSet<>(value.partitions()), value.timestamp())));
        return json;
    }

    private static Map<String, Object> sorted(Map<Uuid, Set<Integer>> map) {
        Map<String, Object> json = new TreeMap<>();
        map.forEach((id, partitions) -> json.put(id.toString(), new TreeSet<>(partitions)));
        return json;
    }
}
