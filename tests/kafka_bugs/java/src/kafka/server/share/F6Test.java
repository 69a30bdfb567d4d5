package kafka.server.share;

import static kafka.server.share.Batches.batch;
import static kafka.server.share.Leader.acknowledged;
import static kafka.server.share.Leader.available;
import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/** F6: A full share partition stalls when its last available records were compacted away. */
class F6Test {
    @Test
    void recordsAreDeliveredAfterTheLastAvailableOnesWereCompactedAway() {
        assertEquals("15-19", fetchedAfterCompaction(10), "what follows is delivered");
    }

    @Test
    void controlAWindowWithRoom() {
        assertEquals("15-19", fetchedAfterCompaction(20));
    }

    private static String fetchedAfterCompaction(int maxRecordLocks) {
        Leader leader =
            new Leader(maxRecordLocks, 0, available(0, 4), acknowledged(5, 14));
        // 0-4 are gone, and the log start is 0 as before.
        leader.log(batch(5, 14), batch(15, 19));

        // The first may only archive 0-4, or bring more besides.
        return leader.fetch("m1") + leader.fetch("m1");
    }
}
