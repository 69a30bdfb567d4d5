package org.apache.kafka.coordinator.share;

import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyBoolean;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.ArgumentMatchers.anyLong;

import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.ClientRequest;
import org.apache.kafka.clients.ClientResponse;
import org.apache.kafka.clients.KafkaClient;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.WriteShareGroupStateRequest;
import org.apache.kafka.common.requests.WriteShareGroupStateResponse;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.share.persister.PersisterStateBatch;
import org.apache.kafka.server.share.persister.PersisterStateManager;
import org.apache.kafka.server.share.persister.ShareCoordinatorMetadataCacheHelper;
import org.apache.kafka.server.util.timer.MockTimer;
import org.mockito.Mockito;

/** A broker's PersisterStateManager and its thread; a StateService answers, and a test may hold the answers. */
final class StatePersister implements AutoCloseable {
    private static final long POLL_MS = 1;
    private static final Node COORDINATOR = new Node(0, "localhost", 9092);

    private final StateService service;
    private final PersisterStateManager manager;
    private final Semaphore queued = new Semaphore(0);
    private final BlockingQueue<ClientResponse> answers = new LinkedBlockingQueue<>();
    private volatile boolean held = false;

    StatePersister(StateService service) {
        this.service = service;
        manager = new PersisterStateManager(network(), metadata(), Time.SYSTEM, new MockTimer());
        manager.start();
    }

    void holdAnswers() {
        held = true;
    }

    void deliverAnswers() {
        held = false;
    }

    /** Write that a leader has acknowledged offsets; when this returns, it is sent or waits for what is on its way. */
    CompletableFuture<Errors> write(int partition, int leaderEpoch, long first, long last) throws InterruptedException {
        CompletableFuture<WriteShareGroupStateResponse> result = new CompletableFuture<>();
        manager.enqueue(manager.new WriteStateHandler("group", StateService.TOPIC, partition, StateService.STATE_EPOCH,
            leaderEpoch, 0, 0, List.of(new PersisterStateBatch(first, last, (byte) 2, (short) 1)), result, null));
        if (!queued.tryAcquire(StateService.TIMEOUT_S, TimeUnit.SECONDS))
            throw new IllegalStateException("not queued in " + StateService.TIMEOUT_S + " s");
        return result.orTimeout(StateService.TIMEOUT_S, TimeUnit.SECONDS).thenApply(response ->
            Errors.forCode(response.data().results().get(0).partitions().get(0).errorCode()));
    }

    @Override
    public void close() throws Exception {
        manager.stop();
    }

    /** Every share partition has the same coordinator. It is looked up just before a write is queued. */
    private ShareCoordinatorMetadataCacheHelper metadata() {
        ShareCoordinatorMetadataCacheHelper metadata = Mockito.mock(
            ShareCoordinatorMetadataCacheHelper.class, Mockito.withSettings().stubOnly());
        Mockito.when(metadata.containsTopic(any())).thenReturn(true);
        Mockito.when(metadata.getShareCoordinator(any(), any())).thenAnswer(call -> {
            queued.release();
            return COORDINATOR;
        });
        return metadata;
    }

    /** The thread sends, then polls, then looks up the next write. */
    private KafkaClient network() {
        KafkaClient network = Mockito.mock(KafkaClient.class, Mockito.withSettings().stubOnly());
        Mockito.when(network.ready(any(), anyLong())).thenReturn(true);
        Mockito.when(network.newClientRequest(any(), any(), anyLong(), anyBoolean(), anyInt(), any())).thenAnswer(call ->
            new ClientRequest(call.getArgument(0), call.getArgument(1), 0, "broker", call.getArgument(2), true,
                call.getArgument(4), call.getArgument(5)));
        Mockito.doAnswer(call -> {
            send(call.getArgument(0));
            return null;
        }).when(network).send(any(), anyLong());
        Mockito.when(network.poll(anyLong(), anyLong())).thenAnswer(call -> {
            if (held)
                Thread.sleep(POLL_MS);
            ClientResponse answer = held ? null : answers.poll(POLL_MS, TimeUnit.MILLISECONDS);
            if (answer != null)
                answer.onComplete();
            return List.of();
        });
        return network;
    }

    private void send(ClientRequest request) {
        WriteShareGroupStateRequest write = (WriteShareGroupStateRequest) request.requestBuilder().build();
        service.write(write.data()).thenAccept(response -> answers.add(new ClientResponse(
            request.makeHeader(write.version()), request.callback(), request.destination(), 0, 0, false, null, null,
            new WriteShareGroupStateResponse(response))));
    }
}
