package kafka.server.share;

import static kafka.server.share.Batches.batch;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import org.junit.jupiter.api.Test;

/** F8: A share partition stalls at a record that was left below the log start. */
class F8Test {
    @Test
    void recordsAboveTheLogStartAreDelivered() {
        assertNotEquals("", fetchedAfterOneRecord(15),
            "some of 15-19 is delivered");
    }

    @Test
    void controlTheLogStartIsTheFirstOffsetOfABatch() {
        assertNotEquals("", fetchedAfterOneRecord(10));
    }

    private static String fetchedAfterOneRecord(long logStart) {
        Leader leader = new Leader(200, 0);
        leader.log(batch(0, 9));
        Given.that("0-9", leader.fetch("m1"));
        leader.log(batch(10, 19));
        leader.deleteRecordsBefore(logStart);
        // A fetch at 10 is out of range, and brings this.
        leader.sharePartition.updateCacheAndOffsets(logStart);

        leader.fetchOne("m2"); // it gets 10, and 11-19 are left
        return leader.fetch("m2") + leader.fetch("m2");
    }
}
