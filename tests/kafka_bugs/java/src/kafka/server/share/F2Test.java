package kafka.server.share;

import static kafka.server.share.Batches.batch;
import static kafka.server.share.Leader.acknowledged;
import static kafka.server.share.Leader.available;
import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/** F2: The delivery complete count goes below zero. */
class F2Test {
    @Test
    void theDeliveryCompleteCountIsNeverNegative() throws InterruptedException {
        Leader leader = leaderPastAcknowledgedRecords();

        leader.lockTimeout(); // of 43-48, below the log start
        leader.sharePartition.updateCacheAndOffsets(54); // as each fetch may

        assertEquals(0, leader.sharePartition.deliveryCompleteCount(),
            "nothing at or above the log start is complete");
    }

    @Test
    void controlNoLockExpires() {
        Leader leader = leaderPastAcknowledgedRecords();

        leader.sharePartition.updateCacheAndOffsets(54);

        assertEquals(0, leader.sharePartition.deliveryCompleteCount());
    }

    private static Leader leaderPastAcknowledgedRecords() {
        Leader leader = new Leader(200, 42, acknowledged(49, 50), available(55, 60));
        leader.log(batch(43, 49));
        Given.that("43-48", leader.fetch("m1"));
        Given.that(2, leader.sharePartition.deliveryCompleteCount());
        // Past 49-50, which are taken off the count.
        leader.sharePartition.updateCacheAndOffsets(54);
        Given.that(0, leader.sharePartition.deliveryCompleteCount());
        return leader;
    }
}
