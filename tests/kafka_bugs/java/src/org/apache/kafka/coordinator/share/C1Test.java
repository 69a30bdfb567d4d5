package org.apache.kafka.coordinator.share;

import static org.apache.kafka.coordinator.share.StateShard.acknowledged;
import static org.apache.kafka.coordinator.share.StateShard.archived;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.message.WriteShareGroupStateRequestData.StateBatch;
import org.apache.kafka.common.protocol.Errors;
import org.junit.jupiter.api.Test;

/** C1: A reversed state batch stops the share coordinator. */
class C1Test {
    private static final long TIMEOUT_S = 5;

    @Test
    void aReversedStateBatchIsRefused() {
        assertEquals("INVALID_REQUEST", answer(archived(4, 9), acknowledged(5, 2)),
            "the answer");
    }

    @Test
    void controlStateBatchesInOrder() {
        assertEquals("NONE", answer(archived(4, 9), acknowledged(10, 12)));
    }

    /** The error of the answer, or what comes in its place. The thread may never end. */
    private static String answer(StateBatch... batches) {
        StateShard shard = new StateShard();
        shard.initialize(0);
        CompletableFuture<Errors> write = new CompletableFuture<>();
        Thread thread = new Thread(() -> {
            try {
                write.complete(shard.write(0, 0, batches));
            } catch (RuntimeException e) {
                write.completeExceptionally(e);
            }
        });
        thread.setDaemon(true);
        thread.start();
        return write.completeOnTimeout(null, TIMEOUT_S, TimeUnit.SECONDS)
            .handle((error, raised) -> raised != null ? raised.getClass().getSimpleName()
                : error == null ? "no answer in " + TIMEOUT_S + " s" : error.name())
            .join();
    }
}
