package kafka.server.share;

import static kafka.server.share.RecordedRequests.answer;
import static kafka.server.share.RecordedRequests.throwsAnswer;
import static kafka.server.share.Responses.list;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.server.share.persister.*;

/** Notes what the test's persister answers. */
final class RecordingPersister implements Persister {
    private final Persister delegate;
    Recorder.Recorded partition;

    RecordingPersister(Persister delegate) {
        this.delegate = delegate;
    }

    private boolean recording() {
        return partition != null && Recorder.current != null;
    }

    @Override
    public CompletableFuture<ReadShareGroupStateResult> readState(ReadShareGroupStateParameters request) {
        CompletableFuture<ReadShareGroupStateResult> f;
        try {
            f = delegate.readState(request);
        } catch (RuntimeException e) {
            if (recording())
                read(throwsAnswer(e));
            throw e;
        }
        if (!recording())
            return f;
        read(partition.answerOf(f));
        return f == null || f.isDone() ? f : late(f, "read");
    }

    @Override
    public CompletableFuture<WriteShareGroupStateResult> writeState(WriteShareGroupStateParameters request) {
        CompletableFuture<WriteShareGroupStateResult> f;
        try {
            f = delegate.writeState(request);
        } catch (RuntimeException e) {
            if (recording())
                write(request, throwsAnswer(e));
            throw e;
        }
        if (!recording())
            return f;
        int k = write(request, partition.answerOf(f));
        return f == null || f.isDone() ? f : late(f, k);
    }

    private void read(Object answer) {
        partition.readAnswer = answer;
        partition.events.add(list("read", answer));
    }

    private int write(WriteShareGroupStateParameters request, Object answer) {
        int k = partition.writes++;
        partition.answers.add(answer);
        partition.events.add(list("write", Responses.write(k, request), answer));
        return k;
    }

    /** A late answer is an operation of its own. */
    private <R> CompletableFuture<R> late(CompletableFuture<R> f, Object write) {
        CompletableFuture<R> outer = new CompletableFuture<>();
        f.whenComplete((result, thrown) -> {
            Recorder.Test test = Recorder.current;
            int[] depth = Recorder.DEPTH.get();
            Object token = depth;
            if (test != null && ++depth[0] == 1) {
                TopicIdPartition tp = partition.topicIdPartition();
                token = Recorder.open(test, List.of(partition), List.of(partition.request("complete", "write", write,
                    "answer", answer(result, thrown, tp.topicId(), tp.partition()))));
            } else if (test != null) {
                test.flags.add("nested-completion");
            }
            if (thrown != null)
                outer.completeExceptionally(thrown);
            else
                outer.complete(result);
            if (test != null)
                Recorder.advanceExit(token);
        });
        return outer;
    }

    @Override
    public CompletableFuture<InitializeShareGroupStateResult> initializeState(
            InitializeShareGroupStateParameters request) {
        return delegate.initializeState(request);
    }

    @Override
    public CompletableFuture<DeleteShareGroupStateResult> deleteState(DeleteShareGroupStateParameters request) {
        return delegate.deleteState(request);
    }

    @Override
    public CompletableFuture<ReadShareGroupStateSummaryResult> readSummary(
            ReadShareGroupStateSummaryParameters request) {
        return delegate.readSummary(request);
    }

    @Override
    public void stop() {
        delegate.stop();
    }
}
