package kafka.server.share;

import java.nio.ByteBuffer;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;

/** Batches of a log. */
final class Batches {
    private static final int SIZE = 256;
    private static final long PRODUCER_ID = 1;

    private Batches() { }

    static MemoryRecords batch(long first, long last) {
        return batch(first, last, RecordBatch.NO_PRODUCER_ID, RecordBatch.NO_PRODUCER_EPOCH, RecordBatch.NO_SEQUENCE);
    }

    static MemoryRecords transactional(long first, long last) {
        return batch(first, last, PRODUCER_ID, (short) 0, 0);
    }

    static MemoryRecords abortMarker(long offset) {
        return MemoryRecords.withEndTransactionMarker(offset, 0L, 0, PRODUCER_ID, (short) 0,
            new EndTransactionMarker(ControlRecordType.ABORT, 0));
    }

    /** As compaction may leave it: it covers all of its offsets, and has a record at the first. */
    private static MemoryRecords batch(long first, long last, long producerId, short producerEpoch, int sequence) {
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(ByteBuffer.allocate(SIZE), RecordBatch.MAGIC_VALUE_V2,
            Compression.NONE, TimestampType.CREATE_TIME, first, 0L, producerId, producerEpoch, sequence,
            producerId != RecordBatch.NO_PRODUCER_ID, false, 0, SIZE);
        builder.appendWithOffset(first, 0L, (byte[]) null, new byte[] {1});
        builder.overrideLastOffset(last);
        return builder.build();
    }
}
