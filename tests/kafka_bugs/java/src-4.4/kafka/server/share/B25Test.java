package kafka.server.share;

import static kafka.server.share.Batches.batch;
import static org.junit.jupiter.api.Assertions.assertEquals;

import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.common.protocol.Errors;
import org.junit.jupiter.api.Test;

/** B25: An advance that throws leaves records in the dead-letter queue's hands for good. */
class B25Test {
    @Test
    void theStartOffsetMovesAfterTheLogStartHasPassedRejectedRecords() {
        assertEquals(20, startOffsetAtTheEnd(15),
            "all below 20 is deleted or acknowledged");
    }

    @Test
    void controlTheLogStartHasNotMoved() {
        assertEquals(20, startOffsetAtTheEnd(0));
    }

    private static long startOffsetAtTheEnd(long logStart) {
        Leader leader = new Leader(200, 0);
        leader.log(batch(0, 9));
        Given.that("0-9", leader.fetch("m1"));
        // The batch is kept by offset from now on.
        leader.acknowledge("m1", 5, 5, AcknowledgeType.RENEW).join();
        leader.holdWrites();
        leader.acknowledge("m1", 0, 9, AcknowledgeType.REJECT);
        leader.sharePartition.updateCacheAndOffsets(logStart);
        leader.answerWrites(Errors.NONE);

        long next = Math.max(logStart, 10);
        leader.log(batch(next, 19));
        leader.deleteRecordsBefore(logStart);
        Given.that(next + "-19", leader.fetch("m1"));
        leader.acknowledge("m1", next, 19, AcknowledgeType.ACCEPT).join();
        return leader.sharePartition.startOffset();
    }
}
