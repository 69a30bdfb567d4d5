package org.apache.kafka.coordinator.share;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorOperationExceptionHelper;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.common.runtime.Deserializer;
import org.apache.kafka.server.share.SharePartitionKey;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.apache.kafka.timeline.TimelineHashMap;
import org.apache.kafka.timeline.TimelineLong;
import org.slf4j.helpers.NOPLogger;

/** One partition of the state topic: Kafka's shard, a log, and what CoordinatorRuntime does between the two. */
final class Shard {
    record Entry(long offset, byte[] key, byte[] value) { }

    /** An operation that has not been answered: how it is answered when its offset is committed, and when it fails. */
    static final class Pending {
        int id = -1;            // given when the operation is answered with "pending"
        long offset = -1;
        private final Supplier<Object> done;
        private final Function<Throwable, Object> failed;

        Pending(Supplier<Object> done, Function<Throwable, Object> failed) {
            this.done = done;
            this.failed = failed;
        }
    }

    final int index;
    private final Coordinator owner;
    private SnapshotRegistry registry;
    ShareCoordinatorShard shard;
    private CoordinatorMetadataImage image;
    boolean failed;             // loading failed; the runtime answers NOT_COORDINATOR from then on
    long logStart;
    long written;               // the offset after the last record in the log
    long committed;             // the high watermark
    Long pruned;                // what the prune job last deleted up to
    final List<Entry> log = new ArrayList<>();
    private List<CoordinatorRecord> batch;  // replayed but not in the log yet; null when there is no open batch
    private final List<Pending> inBatch = new ArrayList<>();
    private final List<Pending> waiting = new ArrayList<>(); // in the log but not committed

    Shard(Coordinator owner, int index) {
        this.owner = owner;
        this.index = index;
    }

    private void fresh() {
        registry = new SnapshotRegistry(Logs.context());
        shard = new ShareCoordinatorShard.Builder(owner.config)
            .withLogContext(Logs.context())
            .withSnapshotRegistry(registry)
            .withTime(owner.time)
            .withCoordinatorMetrics(owner.metrics)
            .withTopicPartition(new TopicPartition("__share_group_state", index))
            .build();
        registry.idempotentCreateSnapshot(0);
    }

    /** Load the shard from its log, as CoordinatorLoaderImpl does. Returns [loaded, skipped]. */
    Object load(CoordinatorMetadataImage image) {
        abandon(Errors.NOT_COORDINATOR.exception());
        pruned = null;
        failed = false;
        fresh();
        int loaded = 0;
        int skipped = 0;
        try {
            for (Entry entry : log) {
                CoordinatorRecord record;
                try {
                    record = Codec.SERDE.deserialize(java.nio.ByteBuffer.wrap(entry.key), entry.value == null ? null : java.nio.ByteBuffer.wrap(entry.value));
                } catch (Deserializer.UnknownRecordTypeException e) {
                    skipped++;
                    continue;
                }
                shard.replay(entry.offset, -1L, (short) -1, record);
                loaded++;
            }
        } catch (RuntimeException e) {
            failed = true;
            fresh();
            committed = written;
            return Codec.raised(e);
        }
        committed = written;
        registry.idempotentCreateSnapshot(written);
        registry.deleteSnapshotsUpTo(written);
        if (image != null)
            shard.onLoaded(image);
        this.image = image;
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("shard", index);
        result.put("loaded", loaded);
        result.put("skipped", skipped);
        return result;
    }

    void update(CoordinatorMetadataImage image) {
        this.image = image;
        if (failed)
            return;
        for (Method method : ShareCoordinatorShard.class.getMethods()) // renamed and turned round in 4.3
            try {
                if (method.getName().equals("onMetadataUpdate"))
                    method.invoke(shard, null, image);
                else if (method.getName().equals("onNewMetadataImage"))
                    method.invoke(shard, image, null);
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException(e);
            }
    }

    /** Run an operation as CoordinatorRuntime runs a write operation. */
    <T> Object perform(
        Supplier<CoordinatorResult<T, CoordinatorRecord>> operation,
        Append append,
        Function<T, Object> render,
        BiFunction<Errors, Throwable, Object> renderError
    ) {
        Function<Throwable, Object> failure = t -> CoordinatorOperationExceptionHelper.handleOperationException(
            "", "", t, (error, message) -> renderError.apply(error, t), NOPLogger.NOP_LOGGER);
        if (failed)
            return failure.apply(Errors.NOT_COORDINATOR.exception());
        CoordinatorResult<T, CoordinatorRecord> result;
        try {
            result = operation.get();
        } catch (Throwable t) {
            return failure.apply(t);
        }
        T response = result.response();
        List<CoordinatorRecord> records = new ArrayList<>(result.records());
        if (records.size() > 1 && owner.sorted)
            records.sort(Comparator.comparing(Shard::sortKey));
        if (append.drop()) { // as Kafka's unit tests do, which replay what they like by themselves
            for (CoordinatorRecord record : records)
                owner.recorded(this, -1, record);
            return render.apply(response);
        }
        if (records.isEmpty()) {
            if (batch == null && committed == written)
                return render.apply(response);
            Pending pending = new Pending(() -> render.apply(response), failure);
            if (batch != null)
                inBatch.add(pending);
            else {
                pending.offset = written;
                waiting.add(pending);
            }
            return owner.pendingResult(pending);
        }
        if (batch == null)
            batch = new ArrayList<>();
        Pending pending = new Pending(() -> render.apply(response), failure);
        inBatch.add(pending);
        try {
            for (CoordinatorRecord record : records) {
                long offset = written + batch.size();
                shard.replay(offset, -1L, (short) -1, record);
                batch.add(record);
                owner.recorded(this, offset, record);
            }
        } catch (Throwable t) {
            failBatch(t);
            return owner.settled(pending);
        }
        if (!append.hold())
            flush(append);
        return owner.settled(pending);
    }

    private static String sortKey(CoordinatorRecord record) {
        Map<String, Object> decoded = Codec.decoded(record);
        return decoded.get("group") + "\0" + decoded.get("topic") + "\0" + String.format("%012d", (int) decoded.get("partition"));
    }

    void flush(Append append) {
        if (batch == null) {
            if (append.error() == null && append.commit())
                commit(written);
            return;
        }
        if (append.error() != null) {
            failBatch(append.error().exception());
            return;
        }
        for (CoordinatorRecord record : batch)
            log.add(new Entry(written++, Codec.SERDE.serializeKey(record), Codec.SERDE.serializeValue(record)));
        registry.idempotentCreateSnapshot(written);
        for (Pending pending : inBatch) {
            pending.offset = written;
            waiting.add(pending);
        }
        inBatch.clear();
        batch = null;
        if (append.commit())
            commit(written);
    }

    void commit(long offset) {
        committed = Math.max(committed, Math.min(offset, written));
        // A snapshot exists only where a batch ended; an offset inside a batch commits up to the one before it.
        registry.deleteSnapshotsUpTo(committed);
        List<Pending> ready = waiting.stream().filter(pending -> pending.offset <= committed).toList();
        waiting.removeAll(ready);
        for (Pending pending : ready)
            owner.settle(pending, pending.done.get());
    }

    private void failBatch(Throwable t) {
        registry.revertToSnapshot(written);
        batch = null;
        List<Pending> failing = new ArrayList<>(inBatch);
        inBatch.clear();
        for (Pending pending : failing)
            owner.settle(pending, pending.failed.apply(t));
    }

    /** All that is pending fails; nothing is reverted, for the shard is going away. */
    private void abandon(Throwable t) {
        batch = null;
        List<Pending> failing = new ArrayList<>(waiting);
        failing.addAll(inBatch);
        waiting.clear();
        inBatch.clear();
        for (Pending pending : failing)
            owner.settle(pending, pending.failed.apply(t));
    }

    boolean timeOut(int id) {
        for (List<Pending> list : List.of(inBatch, waiting))
            for (Pending pending : list)
                if (pending.id == id) {
                    list.remove(pending);
                    owner.settle(pending, pending.failed.apply(Errors.REQUEST_TIMED_OUT.exception()));
                    return true;
                }
        return false;
    }

    void truncate(long end) {
        log.removeIf(entry -> entry.offset >= end);
        written = Math.min(written, Math.max(end, logStart));
        committed = Math.min(committed, written);
    }

    int deleteBefore(long offset) {
        int before = log.size();
        log.removeIf(entry -> entry.offset < offset);
        logStart = Math.max(logStart, offset);
        return before - log.size();
    }

    // What can be seen.

    /** The keys named in the request, or all of them. */
    Map<String, Object> state(Set<SharePartitionKey> named) {
        Map<String, Object> state = new LinkedHashMap<>();
        state.put("shard", index);
        state.put("log", List.of(logStart, written, committed, batch == null ? 0 : batch.size()));
        if (failed) {
            state.put("failed", true);
            return state;
        }
        ShareCoordinatorOffsetsManager manager = field(ShareCoordinatorShard.class, shard, "offsetsManager");
        TimelineLong raw = field(ShareCoordinatorOffsetsManager.class, manager, "lastRedundantOffset");
        state.put("redundant", raw.get() == Long.MAX_VALUE ? null : raw.get());
        state.put("pruned", pruned);
        TimelineHashMap<SharePartitionKey, ShareGroupOffset> states = field(ShareCoordinatorShard.class, shard, "shareStateMap");
        TimelineHashMap<SharePartitionKey, Integer> leaders = field(ShareCoordinatorShard.class, shard, "leaderEpochMap");
        TimelineHashMap<SharePartitionKey, Integer> epochs = field(ShareCoordinatorShard.class, shard, "stateEpochMap");
        TimelineHashMap<SharePartitionKey, Integer> updates = field(ShareCoordinatorShard.class, shard, "snapshotUpdateCount");
        TreeMap<String, SharePartitionKey> keys = new TreeMap<>();
        for (Map<SharePartitionKey, ?> map : List.of(states, leaders, epochs, updates, manager.curState()))
            for (SharePartitionKey key : map.keySet())
                if (named == null || named.contains(key))
                    keys.put(key.groupId() + "\0" + key.topicId() + "\0" + String.format("%012d", key.partition()), key);
        List<Object> list = new ArrayList<>();
        for (SharePartitionKey key : keys.values()) {
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("group", key.groupId());
            one.put("topic", key.topicId().toString());
            one.put("partition", key.partition());
            one.put("leader_epoch", leaders.get(key));
            one.put("state_epoch", epochs.get(key));
            one.put("updates", updates.get(key));
            one.put("snapshot_offset", manager.curState().get(key));
            ShareGroupOffset offset = states.get(key);
            Map<String, Object> data = offset == null ? null : new LinkedHashMap<>();
            if (offset != null) {
                data.put("snapshot_epoch", offset.snapshotEpoch());
                data.put("state_epoch", offset.stateEpoch());
                data.put("leader_epoch", offset.leaderEpoch());
                data.put("start_offset", offset.startOffset());
                data.put("complete", offset.deliveryCompleteCount());
                data.put("created", offset.createTimestamp());
                data.put("written", offset.writeTimestamp());
                data.put("batches", Codec.json(offset.stateBatches()));
            }
            one.put("data", data);
            list.add(one);
        }
        state.put("keys", list);
        return state;
    }

    @SuppressWarnings("unchecked")
    private static <T> T field(Class<?> type, Object object, String name) {
        try {
            Field field = type.getDeclaredField(name);
            field.setAccessible(true);
            return (T) field.get(object);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }
}
