package kafka.server.share;

import static kafka.server.share.Batches.batch;
import static org.junit.jupiter.api.Assertions.assertEquals;

import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.common.protocol.Errors;
import org.junit.jupiter.api.Test;

/** B23: Records on their way to the dead-letter queue are archived without being counted. */
class B23Test {
    @Test
    void recordsThatAreArchivedCountAsComplete() throws InterruptedException {
        Leader leader = leaderWithARejectionInItsLastAttempt();

        leader.lockTimeout();
        leader.answerWrites(Errors.COORDINATOR_NOT_AVAILABLE);

        assertCountOfCompleteRecords(leader);
    }

    @Test
    void controlTheWriteSucceeds() throws InterruptedException {
        Leader leader = leaderWithARejectionInItsLastAttempt();

        leader.answerWrites(Errors.NONE);

        assertCountOfCompleteRecords(leader);
    }

    private static Leader leaderWithARejectionInItsLastAttempt()
            throws InterruptedException {
        Leader leader = new Leader(200, 0);
        leader.log(batch(0, 4));
        Given.that("0-4", leader.fetch("m1"));
        leader.lockTimeout();
        Given.that("0-4", leader.fetch("m1")); // the second attempt, and the limit is 2
        leader.holdWrites();
        leader.acknowledge("m1", 0, 4, AcknowledgeType.REJECT);
        return leader;
    }

    private static void assertCountOfCompleteRecords(Leader leader) {
        leader.log(batch(5, 9), batch(10, 14));
        Given.that("5-14", leader.fetch("m1"));
        leader.acknowledge("m1", 5, 9, AcknowledgeType.ACCEPT).join();
        Given.that(10L, leader.sharePartition.startOffset());

        assertEquals(0, leader.sharePartition.deliveryCompleteCount(),
            "10-14 are acquired, and no record is complete");
    }
}
