package kafka.server.share;

import static kafka.server.share.Responses.acquired;
import static kafka.server.share.Responses.field;
import static kafka.server.share.Responses.future;
import static kafka.server.share.Responses.get;
import static kafka.server.share.Responses.list;
import static kafka.server.share.Responses.map;
import static kafka.server.share.Responses.raised;
import static kafka.server.share.Responses.response;
import static kafka.server.share.Responses.str;

import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.utils.AppInfoParser;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.server.share.fetch.AcquisitionLockTimerTask;
import org.apache.kafka.server.share.fetch.InFlightBatch;
import org.apache.kafka.server.share.fetch.InFlightState;
import org.apache.kafka.server.share.fetch.ShareAcquiredRecords;
import org.apache.kafka.server.share.persister.*;
import org.apache.kafka.server.util.timer.MockTimer;
import org.mockito.Mockito;

/**
 * Records every outermost call on every SharePartition of a test to a trace file. Called by the advice in
 * {@link RecordingAgent} (enter and exit of the hooked methods) and by {@link RecordingListener} (begin and end of a test).
 */
public final class Recorder {
    /** White-box helpers that change nothing: a trace with calls of them stays replayable. */
    private static final Set<String> PURE = Set.of("recordFetchLockRatioMetric",
        "findLastOffsetAcknowledgedAndMetadata", "canMoveStartOffset", "fetchAbortedTransactionRecordBatches",
        "filterRecordBatchesFromAcquiredRecords", "containsAbortMarker");
    private static final Path DIRECTORY = Path.of(System.getProperty("trace.dir", "traces"));
    private static final Field CONFIG_MANAGER = field(SharePartition.class, "groupConfigManager");
    private static final Field GROUP = field(SharePartition.class, "groupId");
    private static final Field TASK_FIRST = field(AcquisitionLockTimerTask.class, "firstOffset");
    private static final Field TASK_LAST = field(AcquisitionLockTimerTask.class, "lastOffset");

    static volatile RecordedTest current;
    /** Nesting of hooked calls on this thread: only the outermost one is recorded. */
    static final ThreadLocal<int[]> DEPTH = ThreadLocal.withInitial(() -> new int[1]);
    private static final ThreadLocal<Recorded> OPEN = new ThreadLocal<>();

    private Recorder() { }

    /** What enter hands to exit for a recorded call; nested calls get the depth counter instead. */
    record Token(RecordedTest test, List<Recorded> partitions, List<Map<String, Object>> requests) { }

    static void begin(String className, String name) {
        DEPTH.get()[0] = 0;
        current = new RecordedTest(className, name);
    }

    static void end(String status) {
        RecordedTest test = current;
        current = null;
        if (test == null)
            return;
        for (Recorded p : test.partitions.values()) {
            if (p.lastState != null && !p.lastState.equals(str(p.state())))
                test.flags.add("external-change");
        }
        List<String> lines = new ArrayList<>();
        lines.add(str(map("trace", 1, "source", "Kafka " + AppInfoParser.getVersion() + " " + test.className,
            "name", test.name, "status", status, "partitions", test.partitions.size(), "calls", test.calls,
            "flags", test.flags)));
        lines.addAll(test.lines);
        try {
            Files.createDirectories(DIRECTORY);
            Files.writeString(DIRECTORY.resolve(test.name + ".jsonl"), String.join("\n", lines) + "\n");
        } catch (IOException e) {
            e.printStackTrace();
        }
    }

    // ---- construction ----

    public static Persister wrap(Persister persister) {
        return current == null || persister == null ? persister : new RecordingPersister(persister);
    }

    public static void created(Object self, Object[] arguments) {
        RecordedTest test = current;
        if (test == null)
            return;
        Recorded p = add(test, (SharePartition) self);
        if (arguments[8] instanceof RecordingPersister persister)
            persister.partition = p;
        emit(test, p, p.request("open",
            "leader_epoch", arguments[2],
            "config", map("max_record_locks", arguments[3], "delivery_count_limit", arguments[4],
                "record_lock_duration_ms", arguments[5]),
            "lifecycle", arguments[11].toString()), null);
    }

    private static Recorded add(RecordedTest test, SharePartition sp) {
        Recorded p = new Recorded();
        p.index = test.partitions.size();
        p.sp = sp;
        p.name = get(GROUP, sp) + "-" + p.topicIdPartition();
        p.timeMs = p.now();
        if (Mockito.mockingDetails(p.time()).isMock())
            test.flags.add("mock-time");
        if (p.timer() instanceof MockTimer timer)
            p.origin = timer.time().milliseconds();
        else
            test.flags.add("real-timer");
        test.partitions.put(sp, p);
        return p;
    }

    private static void emit(RecordedTest test, Recorded p, Map<String, Object> request, Object result) {
        if (!p.answers.isEmpty())
            request.put("answers", new ArrayList<>(p.answers));
        if (!p.lookup.isEmpty())
            request.put("lookup", new LinkedHashMap<>(p.lookup));
        if (request.get("op").equals("initialize") && p.readAnswer != null)
            request.put("answer", p.readAnswer);
        Map<String, Object> state = p.state();
        test.line(request, response(result, p.events, state));
        p.events.clear();
        p.answers.clear();
        p.lookup.clear();
        p.lastState = str(state);
    }

    // ---- calls ----

    static Token open(RecordedTest test, List<Recorded> partitions, List<Map<String, Object>> requests) {
        synchronized (test) {
            if (test.busy != null && test.busy != Thread.currentThread())
                test.flags.add("concurrent");
            test.busy = Thread.currentThread();
        }
        for (int i = 0; i < partitions.size(); i++)
            before(test, partitions.get(i), !requests.get(i).get("op").equals("internal"));
        if (partitions.size() == 1)
            OPEN.set(partitions.get(0));
        return new Token(test, partitions, requests);
    }

    private static void close(RecordedTest test) {
        OPEN.remove();
        synchronized (test) {
            test.busy = null;
        }
    }

    /** Clock moves, group configuration changes and foreign state changes since the last recorded call. */
    private static void before(RecordedTest test, Recorded p, boolean configure) {
        Map<String, Object> state = p.state();
        if (!str(state).equals(p.lastState)) {
            test.flags.add("external-change");
            p.lastState = str(state);
            test.line(p.request("external"), map("state", state));
        }
        long now = p.now();
        if (now != p.timeMs) {
            long ms = now - p.timeMs;
            p.timeMs = now;
            emit(test, p, p.request("advance", "ms", ms, "clock", "time"), null);
        }
        if (!configure)
            return;
        Object config = config(p);
        if (!Objects.equals(config, p.config)) {
            p.config = config;
            emit(test, p, p.request("configure", "config", config), null);
        }
    }

    private static Object config(Recorded p) {
        try {
            Optional<GroupConfig> config =
                ((GroupConfigManager) get(CONFIG_MANAGER, p.sp)).groupConfig((String) get(GROUP, p.sp));
            if (config == null || config.isEmpty())
                return null;
            GroupConfig c = config.get();
            var reset = c.shareAutoOffsetReset();
            String type = reset == null || reset.type() == null ? null : reset.type().name();
            return map(
                "delivery_count_limit", c.shareDeliveryCountLimit(),
                "max_record_locks", c.sharePartitionMaxRecordLocks(),
                "record_lock_duration_ms", c.shareRecordLockDurationMs(),
                "renew_acknowledge_enable", c.shareRenewAcknowledgeEnable(),
                "auto_offset_reset", type == null ? null
                    : type.equals("BY_DURATION") ? "by_duration:PT1H" : type.toLowerCase(Locale.ROOT));
        } catch (RuntimeException e) {
            return null;
        }
    }

    public static Object enter(Object self, String method, Object[] arguments) {
        int[] depth = DEPTH.get();
        RecordedTest test = current;
        if (test == null)
            return null;
        if (++depth[0] > 1)
            return depth;
        test.calls++;
        SharePartition sp = (SharePartition) self;
        Recorded p = test.partitions.get(sp);
        if (p == null) {
            test.flags.add("spy");
            p = add(test, sp);
            p.lastState = str(p.state());
        }
        Map<String, Object> request = RecordedRequests.request(p, method, arguments);
        if (request.get("op").equals("internal"))
            test.flags.add(PURE.contains(method) ? "helper-call" : "internal-call");
        if (request.get("op").equals("initialize"))
            p.readAnswer = null;
        return open(test, List.of(p), List.of(request));
    }

    public static void exit(Object token, Object returned, Throwable thrown) {
        if (token == null)
            return;
        DEPTH.get()[0]--;
        if (!(token instanceof Token t))
            return;
        Recorded p = t.partitions.get(0);
        Map<String, Object> request = t.requests.get(0);
        Object result = null;
        if (thrown != null)
            result = raised(thrown, p.name);
        else if (returned instanceof ShareAcquiredRecords records)
            result = acquired(records);
        else if (returned instanceof CompletableFuture<?> f && !request.get("op").equals("internal"))
            result = future(f, p.futures++, p.events, p.name);
        else if (returned instanceof Boolean || returned instanceof Number)
            result = returned;
        emit(t.test, p, request, result);
        close(t.test);
    }

    // ---- clock and timer ----

    public static Object advanceEnter(Object timer, long ms) {
        RecordedTest test = current;
        if (test == null)
            return null;
        int[] depth = DEPTH.get();
        if (++depth[0] > 1)
            return depth;
        Time timerTime = ((MockTimer) timer).time();
        List<Recorded> partitions = new ArrayList<>();
        synchronized (test.partitions) {
            for (Recorded p : test.partitions.values()) {
                if (p.timer() == timer)
                    partitions.add(p);
            }
        }
        partitions.sort(Comparator.comparingInt(p -> p.index));
        List<Map<String, Object>> requests = new ArrayList<>();
        for (Recorded p : partitions)
            requests.add(p.request("advance", "ms", ms, "clock", timerTime == p.time() ? "both" : "timer"));
        Token token = open(test, partitions, requests);
        for (Recorded p : partitions) {
            if (timerTime == p.time())
                p.timeMs += ms;
        }
        return token;
    }

    public static void advanceExit(Object token) {
        if (token == null)
            return;
        DEPTH.get()[0]--;
        if (!(token instanceof Token t))
            return;
        for (int i = 0; i < t.partitions.size(); i++)
            emit(t.test, t.partitions.get(i), t.requests.get(i), null);
        close(t.test);
    }

    /** MockTimer.size() drops cancelled entries and so may reorder equal deadlines: it has to be replayed too. */
    public static void size(Object timer, int size) {
        RecordedTest test = current;
        if (test == null || DEPTH.get()[0] > 0 || test.partitions.size() != 1)
            return;
        Recorded p = test.partitions.values().iterator().next();
        if (p.timer() != timer)
            return;
        before(test, p, false);
        emit(test, p, p.request("timers"), size);
    }

    public static Object runEnter(Object self) {
        RecordedTest test = current;
        if (test == null)
            return null;
        int[] depth = DEPTH.get();
        if (++depth[0] > 1)
            return depth;
        AcquisitionLockTimerTask task = (AcquisitionLockTimerTask) self;
        Recorded owner = null;
        synchronized (test.partitions) {
            for (Recorded p : test.partitions.values()) {
                if (owns(p, task))
                    owner = p;
            }
        }
        if (owner == null) {
            test.flags.add("stale-timer-run");
            if (test.partitions.isEmpty())
                return depth;
            owner = test.partitions.values().iterator().next();
        }
        return open(test, List.of(owner), List.of(
            owner.request("fire_lock", "first", get(TASK_FIRST, task), "last", get(TASK_LAST, task))));
    }

    private static boolean owns(Recorded p, AcquisitionLockTimerTask task) {
        for (InFlightBatch b : p.sp.cachedState().values()) {
            if (b.offsetState() == null) {
                if (b.batchAcquisitionLockTimeoutTask() == task)
                    return true;
                continue;
            }
            for (InFlightState s : b.offsetState().values()) {
                if (s.acquisitionLockTimeoutTask() == task)
                    return true;
            }
        }
        return false;
    }

    // ---- events ----

    public static void event(Object self, String what) {
        RecordedTest test = current;
        Recorded p = test == null ? null : test.partitions.get(self);
        if (p == null)
            p = OPEN.get();
        if (p != null)
            p.events.add(list(what));
    }

    public static void lookup(String method, long offset, Throwable thrown) {
        Recorded p = OPEN.get();
        if (current == null || p == null)
            return;
        String kind = method.contains("Earliest") ? "earliest" : method.contains("Latest") ? "latest" : "timestamp";
        Object value = offset;
        if (thrown != null) { // an empty look-up is what makes ShareFetchUtils throw OffsetNotAvailableException
            value = thrown.getClass().getSimpleName().equals("OffsetNotAvailableException") ? null
                : map("exception", thrown.getClass().getName(), "message", thrown.getMessage());
        }
        p.lookup.put(kind, value);
        p.events.add(list("lookup", kind, value));
    }
}
