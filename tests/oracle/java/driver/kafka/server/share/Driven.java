package kafka.server.share;

import static kafka.server.share.Responses.JSON;
import static kafka.server.share.Responses.acquired;
import static kafka.server.share.Responses.future;
import static kafka.server.share.Responses.list;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import kafka.server.ReplicaManager;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.requests.ListOffsetsRequest;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.coordinator.group.ShareGroupAutoOffsetResetStrategy;
import org.apache.kafka.server.share.fetch.InFlightBatch;
import org.apache.kafka.server.share.metrics.SharePartitionMetrics;
import org.apache.kafka.server.share.persister.*;
import org.apache.kafka.server.util.MockTime;
import org.apache.kafka.server.util.timer.MockTimer;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.storage.internals.log.OffsetResultHolder;
import org.mockito.Mockito;
import org.mockito.stubbing.Answer;

/** One share partition with its clocks, its persister (this) and its pending futures. */
final class Driven implements Persister {
    private static final String GROUP = "g";
    /** Not random: it shows in some of Kafka's messages. */
    private static final Uuid TOPIC_ID = new Uuid(1, 1);
    private static final Map<String, Uuid> FETCHES = new HashMap<>();

    final TopicIdPartition topicIdPartition = new TopicIdPartition(TOPIC_ID, new TopicPartition("t", 0));
    final String name = GROUP + "-" + topicIdPartition;
    final MockTime time = new MockTime(1_000_000L, 1_000_000_000_000L);
    final MockTime timerTime = new MockTime(1_000_000L, 1_000_000_000_000L);
    final long origin = timerTime.milliseconds();
    final SharePartitionMetrics metrics = new SharePartitionMetrics(GROUP, "t", 0);
    final List<Object> events = new ArrayList<>();
    final JsonNode opened;
    final Timer timer;
    final SharePartition sp;

    /** The answers to the writes of the running operation, then to all others. */
    final Deque<JsonNode> answers = new ArrayDeque<>();
    JsonNode defaultAnswer = text("ok");
    JsonNode readAnswer = text("ok");
    JsonNode lookup;
    JsonNode groupConfig;
    final Map<Integer, CompletableFuture<WriteShareGroupStateResult>> heldWrites = new HashMap<>();
    CompletableFuture<ReadShareGroupStateResult> heldRead;
    int writes;
    int futures;

    Driven(JsonNode request) {
        opened = request.path("config");
        timer = request.path("timer").asText("mock").equals("fifo")
            ? new FifoTimer(timerTime) : new MockTimer(timerTime);
        ReplicaManager replicaManager = mock(ReplicaManager.class, call -> {
            String method = call.getMethod().getName();
            if (method.equals("completeDelayedShareFetchRequest"))
                events.add(list("wake"));
            return method.equals("fetchOffsetForTimestamp") ? lookUp(call.getArgument(1)) : null;
        });
        GroupConfig config = mock(GroupConfig.class, call -> switch (call.getMethod().getName()) {
            case "shareRecordLockDurationMs" -> setting("record_lock_duration_ms", 30000);
            case "shareDeliveryCountLimit" -> setting("delivery_count_limit", 5);
            case "sharePartitionMaxRecordLocks" -> setting("max_record_locks", 200);
            case "shareRenewAcknowledgeEnable" -> groupConfig.path("renew_acknowledge_enable").asBoolean(true);
            case "shareAutoOffsetReset" -> ShareGroupAutoOffsetResetStrategy.fromString(
                groupConfig.path("auto_offset_reset").asText("latest"));
            default -> Mockito.RETURNS_DEFAULTS.answer(call);
        });
        GroupConfigManager configManager = mock(GroupConfigManager.class, call -> {
            if (!call.getMethod().getName().equals("groupConfig"))
                return null;
            return groupConfig == null || groupConfig.isNull() ? Optional.empty() : Optional.of(config);
        });
        sp = new SharePartition(GROUP, topicIdPartition, request.path("leader_epoch").asInt(0),
            setting("max_record_locks", 200), setting("delivery_count_limit", 5),
            setting("record_lock_duration_ms", 30000), timer, time, this, replicaManager, configManager,
            SharePartition.SharePartitionState.valueOf(request.path("lifecycle").asText("EMPTY")),
            mock(SharePartitionManager.SharePartitionListener.class, Mockito.RETURNS_DEFAULTS), metrics);
    }

    private static <T> T mock(Class<T> type, Answer<?> answer) {
        return Mockito.mock(type, Mockito.withSettings().stubOnly().defaultAnswer(answer));
    }

    private static JsonNode text(String s) {
        return JSON.getNodeFactory().textNode(s);
    }

    /** A setting of the group, else of the open request, else the given default. */
    private int setting(String name, int byDefault) {
        int value = opened.path(name).asInt(byDefault);
        return groupConfig == null ? value : groupConfig.path(name).asInt(value);
    }

    Object state() {
        return Responses.state(sp, origin);
    }

    // ---- log ----

    private Object lookUp(long timestamp) {
        String kind = timestamp == ListOffsetsRequest.EARLIEST_TIMESTAMP ? "earliest"
            : timestamp == ListOffsetsRequest.LATEST_TIMESTAMP ? "latest" : "timestamp";
        JsonNode value = lookup == null ? null : lookup.get(kind);
        if (value == null)
            value = JSON.getNodeFactory().numberNode(0);
        events.add(list("lookup", kind, value));
        if (value.isObject())
            throw Requests.exception(value);
        if (value.isNull())
            return new OffsetResultHolder();
        return new OffsetResultHolder(Optional.of(
            new FileRecords.TimestampAndOffset(-1L, value.asLong(), Optional.empty())));
    }

    // ---- persister ----

    @Override
    public CompletableFuture<ReadShareGroupStateResult> readState(ReadShareGroupStateParameters request) {
        events.add(list("read", readAnswer));
        if (readAnswer.has("throws"))
            throw Requests.exception(readAnswer);
        if (readAnswer.asText().equals("null_future"))
            return null;
        CompletableFuture<ReadShareGroupStateResult> f = new CompletableFuture<>();
        if (readAnswer.asText().equals("hold"))
            heldRead = f;
        else
            Requests.finishRead(f, readAnswer, topicIdPartition.topicId());
        return f;
    }

    @Override
    public CompletableFuture<WriteShareGroupStateResult> writeState(WriteShareGroupStateParameters request) {
        int k = writes++;
        JsonNode answer = answers.isEmpty() ? defaultAnswer : answers.poll();
        events.add(list("write", Responses.write(k, request), answer));
        if (answer.has("throws"))
            throw Requests.exception(answer);
        if (answer.asText().equals("null_future"))
            return null;
        CompletableFuture<WriteShareGroupStateResult> f = new CompletableFuture<>();
        if (answer.asText().equals("hold"))
            heldWrites.put(k, f);
        else
            Requests.finishWrite(f, answer, topicIdPartition.topicId());
        return f;
    }

    @Override
    public CompletableFuture<InitializeShareGroupStateResult> initializeState(
            InitializeShareGroupStateParameters request) {
        throw new UnsupportedOperationException();
    }

    @Override
    public CompletableFuture<DeleteShareGroupStateResult> deleteState(DeleteShareGroupStateParameters request) {
        throw new UnsupportedOperationException();
    }

    @Override
    public CompletableFuture<ReadShareGroupStateSummaryResult> readSummary(
            ReadShareGroupStateSummaryParameters request) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void stop() { }

    // ---- operations ----

    Object run(JsonNode request) {
        events.clear();
        answers.clear();
        request.path("answers").forEach(answers::add);
        switch (request.path("op").asText()) {
            case "initialize":
                readAnswer = request.hasNonNull("answer") ? request.get("answer") : text("ok");
                lookup = request.get("lookup");
                return tracked(sp.maybeInitialize());
            case "acquire":
                return acquired(sp.acquire(request.get("member").asText(), Requests.mode(request),
                    request.get("batch_size").asInt(), request.get("max_records").asInt(),
                    request.get("fetch_offset").asLong(), Requests.fetchData(request),
                    Requests.isolation(request)));
            case "acknowledge":
                return tracked(sp.acknowledge(request.get("member").asText(),
                    Requests.ackBatches(request.get("batches"))));
            case "release":
                return tracked(sp.releaseAcquiredRecords(request.get("member").asText()));
            case "next_fetch_offset":
                return sp.nextFetchOffset();
            case "can_acquire":
                return sp.canAcquireRecords();
            case "log_start":
                sp.updateCacheAndOffsets(request.get("offset").asLong());
                return null;
            case "fence":
                sp.markFenced();
                return null;
            case "lock_fetch":
                return sp.maybeAcquireFetchLock(fetch(request));
            case "unlock_fetch":
                sp.releaseFetchLock(fetch(request));
                return null;
            case "advance":
                advance(request.get("ms").asLong(), request.path("clock").asText("both"));
                return null;
            case "fire_lock":
                fireLock(request.get("first").asLong());
                return null;
            case "timers":
                return timer.size();
            case "configure":
                groupConfig = request.get("config");
                return null;
            case "complete":
                complete(request);
                return null;
            case "lookup":
                lookup = request.get("lookup");
                return null;
            case "default_answer":
                defaultAnswer = request.get("answer");
                return null;
            case "state":
                return null;
            default:
                throw new IllegalArgumentException("unknown op");
        }
    }

    /** The same object for the same id, as a fetch has it: Kafka compares references. */
    private static Uuid fetch(JsonNode request) {
        return FETCHES.computeIfAbsent(request.get("id").asText(), Uuid::fromString);
    }

    private Object tracked(CompletableFuture<Void> f) {
        return future(f, futures++, events, name);
    }

    private void advance(long ms, String clock) {
        if (!clock.equals("timer"))
            time.sleep(ms);
        if (!clock.equals("time")) {
            try {
                timer.advanceClock(ms);
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    /** Runs the lock task of the cell at the offset directly, as some of Kafka's tests do. */
    private void fireLock(long offset) {
        InFlightBatch batch = sp.cachedState().floorEntry(offset).getValue();
        if (batch.offsetState() == null)
            batch.batchAcquisitionLockTimeoutTask().run();
        else
            batch.offsetState().get(offset).acquisitionLockTimeoutTask().run();
    }

    private void complete(JsonNode request) {
        JsonNode write = request.get("write");
        if (!write.isTextual()) {
            Requests.finishWrite(heldWrites.remove(write.asInt()), request.get("answer"),
                topicIdPartition.topicId());
            return;
        }
        CompletableFuture<ReadShareGroupStateResult> f = heldRead;
        heldRead = null;
        if (request.has("lookup"))
            lookup = request.get("lookup");
        Requests.finishRead(f, request.get("answer"), topicIdPartition.topicId());
    }
}
