package kafka.server.share;

import static kafka.server.share.Batches.abortMarker;
import static kafka.server.share.Batches.transactional;
import static org.junit.jupiter.api.Assertions.assertEquals;

import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.junit.jupiter.api.Test;

/** B22: The delivery complete count counts records below the SPSO. */
class B22Test {
    @Test
    void recordsBelowTheStartOffsetAreNotCounted() {
        assertEquals(0, completeButNotInFlight(5),
            "records that are complete, and not in flight");
    }

    @Test
    void controlTheLogStartHasNotMoved() {
        assertEquals(0, completeButNotInFlight(0));
    }

    private static long completeButNotInFlight(long logStart) {
        Leader leader = new Leader(200, 0);
        leader.log(transactional(0, 9), abortMarker(10));
        Given.that("0-10", leader.fetch("m1")); // the group reads uncommitted records
        leader.sharePartition.updateCacheAndOffsets(logStart);
        leader.acknowledge("m1", logStart, 10, AcknowledgeType.RELEASE).join();

        leader.readCommitted(1, 0); // the group's isolation level is altered
        leader.fetch("m2"); // this archives what is left of 0-9

        SharePartition partition = leader.sharePartition;
        long inFlight = partition.endOffset() - partition.startOffset() + 1;
        return Math.max(0, partition.deliveryCompleteCount() - inFlight);
    }
}
