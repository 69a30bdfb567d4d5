package org.apache.kafka.coordinator.share;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.protocol.Errors;
import org.junit.jupiter.api.Test;

/** C3: Of several writes of a share partition in one request each is answered what the last one is. */
class C3Test {
    @Test
    void aFencedWriteFailsInOneRequestWithAWriteOfTheNextLeader() throws Exception {
        assertEquals("FENCED_LEADER_EPOCH, NONE: 5-9", answers(true),
            "the answers");
    }

    @Test
    void controlEachWriteHasARequest() throws Exception {
        assertEquals("FENCED_LEADER_EPOCH, NONE: 5-9", answers(false));
    }

    /** The results of two writes, of which the first is fenced, and what is stored. */
    private static String answers(boolean together) throws Exception {
        try (StateService service = new StateService();
                StatePersister persister = new StatePersister(service)) {
            service.initializeAndRead(4); // the next leader's epoch
            if (together) {
                persister.holdAnswers();
                persister.write(1, 0, 0, 0); // another share partition's is on its way
            }
            // Of partition 0: 0-4 by leader epoch 3, and 5-9 by 4.
            CompletableFuture<Errors> fenced = persister.write(0, 3, 0, 4);
            if (!together)
                fenced.join();
            CompletableFuture<Errors> last = persister.write(0, 4, 5, 9);
            persister.deliverAnswers();
            return fenced.join() + ", " + last.join() + ": " + service.read(4);
        }
    }
}
