package kafka.server.share;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.apache.kafka.common.message.ShareFetchResponseData.AcquiredRecords;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.server.share.fetch.AcquisitionLockTimerTask;
import org.apache.kafka.server.share.fetch.InFlightBatch;
import org.apache.kafka.server.share.fetch.InFlightState;
import org.apache.kafka.server.share.fetch.RecordState;
import org.apache.kafka.server.share.fetch.ShareAcquiredRecords;
import org.apache.kafka.server.share.persister.PartitionStateBatchData;
import org.apache.kafka.server.share.persister.PersisterStateBatch;
import org.apache.kafka.server.share.persister.WriteShareGroupStateParameters;
import org.apache.kafka.server.util.timer.TimerTask;
import org.apache.kafka.server.util.timer.TimerTaskEntry;

/** Kafka's objects as the line protocol's JSON: what a response shows. {@link Requests} is the other direction. */
final class Responses {
    static final ObjectMapper JSON = new ObjectMapper();
    /** Stands in messages for "group-topicIdPartition", which differs from run to run. */
    private static final String KEY_PLACEHOLDER = "<key>";
    private static final Field BATCH_STATE = field(InFlightBatch.class, "batchState");
    private static final Field TERMINAL = field(InFlightState.class, "isTerminalState");
    private static final Field TIMER_ENTRY = field(TimerTask.class, "timerTaskEntry");
    private static final Field CACHED_STATE = field(SharePartition.class, "cachedState");

    private Responses() { }

    // ---- reflection and JSON helpers ----

    static Field field(Class<?> owner, String name) {
        try {
            Field f = owner.getDeclaredField(name);
            f.setAccessible(true);
            return f;
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    static Object get(Field field, Object owner) {
        try {
            return field.get(owner);
        } catch (IllegalAccessException e) {
            throw new IllegalStateException(e);
        }
    }

    static String str(Object value) {
        try {
            return JSON.writeValueAsString(value);
        } catch (JsonProcessingException e) {
            throw new IllegalStateException(e);
        }
    }

    static Map<String, Object> map(Object... keysAndValues) {
        Map<String, Object> m = new LinkedHashMap<>();
        for (int i = 0; i < keysAndValues.length; i += 2)
            m.put((String) keysAndValues[i], keysAndValues[i + 1]);
        return m;
    }

    static List<Object> list(Object... values) {
        return new ArrayList<>(Arrays.asList(values));
    }

    static Throwable unwrap(Throwable t) {
        return t instanceof CompletionException && t.getCause() != null ? t.getCause() : t;
    }

    // ---- responses ----

    static Map<String, Object> response(Object result, List<Object> events, Object state) {
        return map("result", result, "events", new ArrayList<>(events), "state", state);
    }

    /** The "state" of a response; lock deadlines are relative to {@code origin}. */
    @SuppressWarnings("unchecked")
    static Map<String, Object> state(SharePartition sp, long origin) {
        List<Object> batches = new ArrayList<>();
        for (InFlightBatch b : ((NavigableMap<Long, InFlightBatch>) get(CACHED_STATE, sp)).values()) {
            if (b.offsetState() == null) {
                InFlightState s = (InFlightState) get(BATCH_STATE, b);
                batches.add(list(b.firstOffset(), b.lastOffset(), cell(s, origin)));
            } else {
                batches.add(list(b.firstOffset(), b.lastOffset(), runs(b, origin), "per_offset"));
            }
        }
        SharePartition.GapWindow gap = sp.persisterReadResultGapWindow();
        return map(
            "lifecycle", sp.partitionState().name(),
            "start_offset", sp.startOffset(),
            "end_offset", sp.endOffset(),
            "delivery_complete_count", sp.deliveryCompleteCount(),
            "state_epoch", sp.stateEpoch(),
            "batches", batches,
            "internal", map(
                "find_next", sp.findNextFetchOffset(),
                "gap", gap == null ? null : list(gap.gapStartOffset(), gap.endOffset()),
                "fetch_lock", sp.fetchLock() == null ? null : sp.fetchLock().toString()));
    }

    /** Consecutive offsets with equal cells, merged to [first, last, cell]. */
    private static List<Object> runs(InFlightBatch b, long origin) {
        List<Object> runs = new ArrayList<>();
        List<Object> run = null;
        for (var e : b.offsetState().entrySet()) {
            List<Object> cell = cell(e.getValue(), origin);
            if (run != null && run.get(2).equals(cell) && (long) run.get(1) + 1 == e.getKey()) {
                run.set(1, e.getKey());
            } else {
                run = list(e.getKey(), e.getKey(), cell);
                runs.add(run);
            }
        }
        return runs;
    }

    /** [state, delivery count, member, lock deadline (null: no lock, -1: no longer scheduled), flags]. */
    private static List<Object> cell(InFlightState s, long origin) {
        AcquisitionLockTimerTask lock = s.acquisitionLockTimeoutTask();
        Object deadline = null;
        if (lock != null) {
            TimerTaskEntry entry = (TimerTaskEntry) get(TIMER_ENTRY, lock);
            deadline = entry == null ? -1L : entry.expirationMs - origin;
        }
        String flags = (s.hasOngoingStateTransition() ? "o" : "")
            + (lock != null && lock.hasExpired() ? "x" : "")
            + ((boolean) get(TERMINAL, s) ? "t" : "");
        RecordState state = s.state();
        return list(state == null ? null : state.name(), s.deliveryCount(), s.memberId(), deadline, flags);
    }

    /** ERR: the protocol error a broker would send for the exception, and the exception itself. */
    static Map<String, Object> error(Throwable thrown, String key) {
        Throwable t = unwrap(thrown);
        String message = t.getMessage();
        if (message != null && key != null)
            message = message.replace(key, KEY_PLACEHOLDER);
        return map("error", Errors.forException(t).name(), "exception", t.getClass().getSimpleName(),
            "message", message);
    }

    static Map<String, Object> raised(Throwable t, String key) {
        return map("raised", error(t, key));
    }

    /** The status of a future: "ok", "pending" or ERR. */
    static Object status(CompletableFuture<?> f, String key) {
        if (!f.isDone())
            return "pending";
        try {
            f.join();
            return "ok";
        } catch (RuntimeException e) {
            return error(e, key);
        }
    }

    /** The result for a returned future; when it is still pending, a "future" event is added as it settles. */
    static Map<String, Object> future(CompletableFuture<?> f, int id, List<Object> events, String key) {
        Object status = status(f, key);
        if ("pending".equals(status))
            f.whenComplete((r, e) -> events.add(list("future", id, status(f, key))));
        return map("future", id, "status", status);
    }

    static Map<String, Object> acquired(ShareAcquiredRecords records) {
        List<Object> ranges = new ArrayList<>();
        for (AcquiredRecords a : records.acquiredRecords())
            ranges.add(list(a.firstOffset(), a.lastOffset(), (int) a.deliveryCount()));
        return map("count", records.count(), "acquired", ranges);
    }

    /** What a write event says about the k-th write. */
    static Map<String, Object> write(int k, WriteShareGroupStateParameters parameters) {
        PartitionStateBatchData d = parameters.groupTopicPartitionData().topicsData().get(0).partitions().get(0);
        return map(
            "write", k,
            "start_offset", d.startOffset(),
            "delivery_complete_count", d.deliveryCompleteCount(),
            "state_epoch", d.stateEpoch(),
            "leader_epoch", d.leaderEpoch(),
            "state_batches", stateBatches(d.stateBatches()));
    }

    private static List<Object> stateBatches(List<PersisterStateBatch> batches) {
        List<Object> l = new ArrayList<>();
        for (PersisterStateBatch b : batches)
            l.add(list(b.firstOffset(), b.lastOffset(), (int) b.deliveryState(), (int) b.deliveryCount()));
        return l;
    }
}
