package kafka.server.share;

import static kafka.server.share.Batches.abortMarker;
import static kafka.server.share.Batches.batch;
import static kafka.server.share.Batches.transactional;
import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/** F7: A full share partition stalls when its records are those of an aborted transaction. */
class F7Test {
    private static final long NOTHING = -1;

    @Test
    void recordsAreDeliveredAfterAnAbortedTransactionThatFillsTheWindow() {
        assertEquals(14, lastFetchedAfterTheTransaction(10),
            "what follows the transaction is delivered");
    }

    @Test
    void controlAWindowWithRoom() {
        assertEquals(14, lastFetchedAfterTheTransaction(20));
    }

    private static long lastFetchedAfterTheTransaction(int maxRecordLocks) {
        Leader leader = new Leader(maxRecordLocks, 0);
        leader.log(transactional(0, 9), abortMarker(10), batch(11, 14));
        leader.readCommitted(1, 0);

        // The first may only archive 0-9, or bring more besides.
        String fetched = leader.fetch("m1") + leader.fetch("m1");
        String last = fetched.substring(fetched.lastIndexOf('-') + 1);
        return last.isEmpty() ? NOTHING : Long.parseLong(last);
    }
}
