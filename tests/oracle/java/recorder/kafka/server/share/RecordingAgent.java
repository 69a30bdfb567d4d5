package kafka.server.share;

import static net.bytebuddy.matcher.ElementMatchers.isConstructor;
import static net.bytebuddy.matcher.ElementMatchers.isMethod;
import static net.bytebuddy.matcher.ElementMatchers.isStatic;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.namedOneOf;
import static net.bytebuddy.matcher.ElementMatchers.not;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import java.lang.instrument.Instrumentation;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.bytecode.assign.Assigner;
import org.apache.kafka.server.share.persister.Persister;

/** Java agent: hooks SharePartition and its clock, timer tasks and offset look-ups for {@link Recorder}. */
public final class RecordingAgent {
    private static final String[] OPERATIONS = {
        "maybeInitialize", "nextFetchOffset", "acquire", "acknowledge", "releaseAcquiredRecords",
        "updateCacheAndOffsets", "canAcquireRecords", "maybeAcquireFetchLock", "releaseFetchLock", "markFenced",
        // white-box calls of the tests; not part of the replayable vocabulary
        "writeShareGroupState", "scheduleAcquisitionLockTimeout", "updateFindNextFetchOffset",
        "rollbackOrProcessStateUpdates", "recordFetchLockRatioMetric", "findLastOffsetAcknowledgedAndMetadata",
        "canMoveStartOffset", "fetchAbortedTransactionRecordBatches", "filterRecordBatchesFromAcquiredRecords",
        "containsAbortMarker"};
    private static final String[] LOOKUPS = {
        "offsetForEarliestTimestamp", "offsetForLatestTimestamp", "offsetForTimestamp"};

    private RecordingAgent() { }

    public static void premain(String argument, Instrumentation instrumentation) {
        new AgentBuilder.Default()
            .disableClassFormatChanges()
            .with(AgentBuilder.RedefinitionStrategy.RETRANSFORMATION)
            .type(named("kafka.server.share.SharePartition"))
            .transform((builder, type, loader, module, domain) -> builder
                .visit(Advice.to(Constructor.class).on(isConstructor().and(takesArguments(14))))
                .visit(Advice.to(Operation.class).on(isMethod().and(not(isStatic())).and(namedOneOf(OPERATIONS))))
                .visit(Advice.to(Wake.class).on(named("maybeCompleteDelayedShareFetchRequest"))))
            .type(named("kafka.server.share.ShareFetchUtils"))
            .transform((builder, type, loader, module, domain) -> builder
                .visit(Advice.to(Lookup.class).on(namedOneOf(LOOKUPS))))
            .type(named("org.apache.kafka.server.util.timer.MockTimer"))
            .transform((builder, type, loader, module, domain) -> builder
                .visit(Advice.to(AdvanceClock.class).on(named("advanceClock")))
                .visit(Advice.to(Size.class).on(named("size"))))
            .type(named("org.apache.kafka.server.share.fetch.AcquisitionLockTimerTask"))
            .transform((builder, type, loader, module, domain) -> builder
                .visit(Advice.to(RunTask.class).on(named("run"))))
            .installOn(instrumentation);
    }

    /** SharePartition's constructor: wraps the persister. */
    public static final class Constructor {
        @Advice.OnMethodEnter
        public static void enter(@Advice.Argument(value = 8, readOnly = false) Persister persister) {
            persister = Recorder.wrap(persister);
        }

        @Advice.OnMethodExit
        public static void exit(@Advice.This Object self, @Advice.AllArguments Object[] arguments) {
            Recorder.created(self, arguments);
        }
    }

    /** A call of one of OPERATIONS. */
    public static final class Operation {
        @Advice.OnMethodEnter
        public static Object enter(@Advice.This Object self, @Advice.Origin("#m") String method,
                                   @Advice.AllArguments Object[] arguments) {
            return Recorder.enter(self, method, arguments);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        public static void exit(@Advice.Enter Object token,
                                @Advice.Return(typing = Assigner.Typing.DYNAMIC) Object returned,
                                @Advice.Thrown Throwable thrown) {
            Recorder.exit(token, returned, thrown);
        }
    }

    /** The wake-up of waiting share fetches. */
    public static final class Wake {
        @Advice.OnMethodEnter
        public static void enter(@Advice.This Object self, @Advice.Argument(0) boolean wake) {
            if (wake)
                Recorder.event(self, "wake");
        }
    }

    /** The look-up of a start offset. */
    public static final class Lookup {
        @Advice.OnMethodExit(onThrowable = Throwable.class)
        public static void exit(@Advice.Origin("#m") String method, @Advice.Return long offset,
                                @Advice.Thrown Throwable thrown) {
            Recorder.lookup(method, offset, thrown);
        }
    }

    /** A move of the timer's clock. */
    public static final class AdvanceClock {
        @Advice.OnMethodEnter
        public static Object enter(@Advice.This Object self, @Advice.Argument(0) long ms) {
            return Recorder.advanceEnter(self, ms);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        public static void exit(@Advice.Enter Object token) {
            Recorder.advanceExit(token);
        }
    }

    /** MockTimer.size(), which also drops cancelled tasks. */
    public static final class Size {
        @Advice.OnMethodExit
        public static void exit(@Advice.This Object self, @Advice.Return int size) {
            Recorder.size(self, size);
        }
    }

    /** The run of a lock task, by the timer or by a test. */
    public static final class RunTask {
        @Advice.OnMethodEnter
        public static Object enter(@Advice.This Object self) {
            return Recorder.runEnter(self);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        public static void exit(@Advice.Enter Object token) {
            Recorder.advanceExit(token);
        }
    }
}
