package kafka.server.share;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.internals.ShareAcquireMode;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.FetchResponseData.AbortedTransaction;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.server.share.acknowledge.ShareAcknowledgementBatch;
import org.apache.kafka.server.share.persister.DeleteShareGroupStateParameters;
import org.apache.kafka.server.share.persister.DeleteShareGroupStateResult;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateParameters;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateResult;
import org.apache.kafka.server.share.persister.PartitionFactory;
import org.apache.kafka.server.share.persister.PartitionStateBatchData;
import org.apache.kafka.server.share.persister.Persister;
import org.apache.kafka.server.share.persister.PersisterStateBatch;
import org.apache.kafka.server.share.persister.ReadShareGroupStateParameters;
import org.apache.kafka.server.share.persister.ReadShareGroupStateResult;
import org.apache.kafka.server.share.persister.ReadShareGroupStateSummaryParameters;
import org.apache.kafka.server.share.persister.ReadShareGroupStateSummaryResult;
import org.apache.kafka.server.share.persister.TopicData;
import org.apache.kafka.server.share.persister.WriteShareGroupStateParameters;
import org.apache.kafka.server.share.persister.WriteShareGroupStateResult;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchPartitionData;
import org.apache.kafka.server.util.MockTime;
import org.apache.kafka.server.util.timer.MockTimer;
import org.apache.kafka.server.util.timer.Timer;

/** A SharePartition as its leader has it: with a log to fetch from, a clock that a test moves, and a persister that it answers. */
final class Leader implements Persister {
    static final int LOCK_MS = 1000;
    static final int DELIVERY_COUNT_LIMIT = 2;

    final TopicIdPartition topicIdPartition = new TopicIdPartition(new Uuid(1, 1), new TopicPartition("topic", 0));
    final MockTime time = new MockTime();
    final Timer timer = new MockTimer(time);
    final int maxRecordLocks;
    final SharePartition sharePartition;

    private final long persistedStart;
    private final List<PersisterStateBatch> persisted;
    private final List<CompletableFuture<WriteShareGroupStateResult>> held = new ArrayList<>();
    private boolean holdWrites = false;
    /** All writes so far. */
    final List<PartitionStateBatchData> writes = new ArrayList<>();

    private List<MemoryRecords> log = List.of();
    private List<AbortedTransaction> aborted = null;
    private long logStart = 0;

    /** A leader that has read the start offset and the state batches. */
    Leader(int maxRecordLocks, long start, PersisterStateBatch... batches) {
        this.maxRecordLocks = maxRecordLocks;
        persistedStart = start;
        persisted = List.of(batches);
        sharePartition = SharePartitions.create(this);
        sharePartition.maybeInitialize().join();
    }

    static PersisterStateBatch available(long first, long last) {
        return new PersisterStateBatch(first, last, (byte) 0, (short) 1);
    }

    static PersisterStateBatch acknowledged(long first, long last) {
        return new PersisterStateBatch(first, last, (byte) 2, (short) 1);
    }

    /** Set what the log has from now on. */
    void log(MemoryRecords... batches) {
        log = List.of(batches);
    }

    /** Let fetches read committed records only, where one transaction is aborted. */
    void readCommitted(long producerId, long firstOffset) {
        aborted = List.of(new AbortedTransaction().setProducerId(producerId).setFirstOffset(firstOffset));
    }

    /** Delete the records below the offset. The share partition learns of it from a fetch. */
    void deleteRecordsBefore(long offset) {
        logStart = offset;
    }

    /**
     * What a fetch brings, as in "0-4 10-14".
     *
     * Nothing is read where the share partition has no room (DelayedShareFetch.acquirablePartitions), and a read below
     * the log start tells it the log start instead (ShareFetchUtils.processFetchResponse).
     */
    String fetch(String member) {
        return fetch(member, ShareAcquireMode.BATCH_OPTIMIZED, 500);
    }

    /** What a fetch brings that is to bring one record (share.acquire.mode=record_limit, max.poll.records=1). */
    String fetchOne(String member) {
        return fetch(member, ShareAcquireMode.RECORD_LIMIT, 1);
    }

    private String fetch(String member, ShareAcquireMode mode, int maxRecords) {
        if (!sharePartition.canAcquireRecords())
            return "";
        long offset = sharePartition.nextFetchOffset();
        if (offset < logStart) {
            sharePartition.updateCacheAndOffsets(logStart);
            return "";
        }
        FetchPartitionData data = new FetchPartitionData(Errors.NONE, Long.MAX_VALUE, logStart, recordsFrom(offset),
            Optional.empty(), OptionalLong.empty(), Optional.ofNullable(aborted), OptionalInt.empty(), false);
        return sharePartition.acquire(member, mode, 500, maxRecords, offset, data,
                aborted == null ? FetchIsolation.HIGH_WATERMARK : FetchIsolation.TXN_COMMITTED)
            .acquiredRecords().stream()
            .map(records -> records.firstOffset() + "-" + records.lastOffset())
            .collect(Collectors.joining(" "));
    }

    private MemoryRecords recordsFrom(long offset) {
        List<ByteBuffer> read = log.stream()
            .filter(batch -> batch.lastBatch().orElseThrow().lastOffset() >= offset)
            .map(MemoryRecords::buffer).toList();
        ByteBuffer all = ByteBuffer.allocate(read.stream().mapToInt(ByteBuffer::remaining).sum());
        read.forEach(buffer -> all.put(buffer.duplicate()));
        return MemoryRecords.readableRecords(all.flip());
    }

    CompletableFuture<Void> acknowledge(String member, long first, long last, AcknowledgeType type) {
        return sharePartition.acknowledge(member, List.of(new ShareAcknowledgementBatch(first, last, List.of(type.id))));
    }

    void lockTimeout() throws InterruptedException {
        timer.advanceClock(LOCK_MS + 1);
    }

    // The persister.

    /** Leave the writes that follow unanswered. */
    void holdWrites() {
        holdWrites = true;
    }

    /** Answer what is unanswered, and all that follows at once. */
    void answerWrites(Errors error) {
        holdWrites = false;
        List.copyOf(held).forEach(future -> future.complete(written(error)));
        held.clear();
    }

    void answerFirstWrite(Errors error) {
        held.remove(0).complete(written(error));
    }

    private WriteShareGroupStateResult written(Errors error) {
        return new WriteShareGroupStateResult.Builder().setTopicsData(List.of(new TopicData<>(topicIdPartition.topicId(),
            List.of(PartitionFactory.newPartitionErrorData(0, error.code(), error.message()))))).build();
    }

    @Override
    public CompletableFuture<ReadShareGroupStateResult> readState(ReadShareGroupStateParameters request) {
        return CompletableFuture.completedFuture(new ReadShareGroupStateResult.Builder().setTopicsData(List.of(
            new TopicData<>(topicIdPartition.topicId(), List.of(PartitionFactory.newPartitionAllData(
                0, 3, persistedStart, Errors.NONE.code(), null, persisted))))).build());
    }

    @Override
    public CompletableFuture<WriteShareGroupStateResult> writeState(WriteShareGroupStateParameters request) {
        writes.add(request.groupTopicPartitionData().topicsData().get(0).partitions().get(0));
        if (!holdWrites)
            return CompletableFuture.completedFuture(written(Errors.NONE));
        CompletableFuture<WriteShareGroupStateResult> future = new CompletableFuture<>();
        held.add(future);
        return future;
    }

    @Override
    public CompletableFuture<InitializeShareGroupStateResult> initializeState(InitializeShareGroupStateParameters request) {
        throw new UnsupportedOperationException();
    }

    @Override
    public CompletableFuture<DeleteShareGroupStateResult> deleteState(DeleteShareGroupStateParameters request) {
        throw new UnsupportedOperationException();
    }

    @Override
    public CompletableFuture<ReadShareGroupStateSummaryResult> readSummary(ReadShareGroupStateSummaryParameters request) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void stop() { }
}
