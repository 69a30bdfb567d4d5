package org.apache.kafka.coordinator.share;

import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyShort;

import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.message.InitializeShareGroupStateRequestData;
import org.apache.kafka.common.message.ReadShareGroupStateRequestData;
import org.apache.kafka.common.message.WriteShareGroupStateRequestData;
import org.apache.kafka.common.message.WriteShareGroupStateResponseData;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorLoader;
import org.apache.kafka.coordinator.common.runtime.CoordinatorPlayback;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.PartitionWriter;
import org.apache.kafka.coordinator.share.metrics.ShareCoordinatorMetrics;
import org.apache.kafka.coordinator.share.metrics.ShareCoordinatorRuntimeMetrics;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.server.util.timer.MockTimer;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.mockito.Mockito;

/** A ShareCoordinatorService with its runtime and its threads; its state topic is in memory, and commits at once. */
final class StateService implements AutoCloseable {
    static final Uuid TOPIC = new Uuid(1, 1);
    static final int STATE_EPOCH = 1;
    static final long TIMEOUT_S = 60;

    private final ShareCoordinatorService service;
    private PartitionWriter.Listener listener;
    private long end = 0;

    StateService() {
        Map<String, Object> atOnce = Map.of("share.coordinator.append.linger.ms", 0);
        service = StateServices.builder(new ShareCoordinatorConfig(
                new AbstractConfig(ShareCoordinatorConfig.CONFIG_DEF, atOnce, false)))
            .withWriter(stateTopic())
            .withLoader(new EmptyLoader())
            .withTime(Time.SYSTEM)
            .withTimer(new MockTimer())
            .withCoordinatorMetrics(new ShareCoordinatorMetrics())
            .withCoordinatorRuntimeMetrics(new ShareCoordinatorRuntimeMetrics(new Metrics()))
            .build();
        service.startup(() -> 1);
        MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        delta.replay(new TopicRecord().setTopicId(TOPIC).setName("topic"));
        delta.replay(new PartitionRecord().setTopicId(TOPIC).setPartitionId(0).setReplicas(List.of(0)));
        StateServices.update(service, delta, delta.apply(new MetadataProvenance(0, 0, 0L, true)));
        service.onElection(0, 0);
    }

    /** Initialize the share partition, and read its state as a leader does that begins. */
    void initializeAndRead(int leaderEpoch) {
        answered(service.initializeState(null, new InitializeShareGroupStateRequestData().setGroupId("group")
            .setTopics(List.of(new InitializeShareGroupStateRequestData.InitializeStateData().setTopicId(TOPIC)
                .setPartitions(List.of(new InitializeShareGroupStateRequestData.PartitionData()
                    .setPartition(0).setStateEpoch(STATE_EPOCH).setStartOffset(0)))))));
        read(leaderEpoch);
    }

    /** The state batches that a leader reads, as in "5-9 20-24". */
    String read(int leaderEpoch) {
        return answered(service.readState(null, new ReadShareGroupStateRequestData().setGroupId("group")
                .setTopics(List.of(new ReadShareGroupStateRequestData.ReadStateData().setTopicId(TOPIC)
                    .setPartitions(List.of(new ReadShareGroupStateRequestData.PartitionData()
                        .setPartition(0).setLeaderEpoch(leaderEpoch)))))))
            .results().get(0).partitions().get(0).stateBatches().stream()
            .map(batch -> batch.firstOffset() + "-" + batch.lastOffset())
            .collect(Collectors.joining(" "));
    }

    /** What KafkaApis calls for a WriteShareGroupState. */
    CompletableFuture<WriteShareGroupStateResponseData> write(WriteShareGroupStateRequestData request) {
        return service.writeState(null, request);
    }

    @Override
    public void close() {
        service.shutdown();
    }

    private static <T> T answered(CompletableFuture<T> answer) {
        return answer.orTimeout(TIMEOUT_S, TimeUnit.SECONDS).join();
    }

    private PartitionWriter stateTopic() {
        PartitionWriter writer = Mockito.mock(PartitionWriter.class, Mockito.withSettings().stubOnly());
        Mockito.when(writer.config(any())).thenReturn(new LogConfig(Map.of()));
        Mockito.doAnswer(call -> listener = call.getArgument(1)).when(writer).registerListener(any(), any());
        Mockito.when(writer.append(any(), any(), any(), anyShort())).thenAnswer(call -> {
            for (var ignored : call.<MemoryRecords>getArgument(2).records())
                end++;
            listener.onHighWatermarkUpdated(call.getArgument(0), end);
            return end;
        });
        return writer;
    }

    private static final class EmptyLoader implements CoordinatorLoader<CoordinatorRecord> {
        @Override
        public CompletableFuture<LoadSummary> load(
            TopicPartition partition, CoordinatorPlayback<CoordinatorRecord> coordinator) {
            return CompletableFuture.completedFuture(new LoadSummary(0, 0, 0, 0, 0));
        }

        @Override
        public void close() { }
    }
}
