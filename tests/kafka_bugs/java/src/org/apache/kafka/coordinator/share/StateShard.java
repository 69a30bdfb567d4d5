package org.apache.kafka.coordinator.share;

import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.message.InitializeShareGroupStateRequestData;
import org.apache.kafka.common.message.ReadShareGroupStateRequestData;
import org.apache.kafka.common.message.ReadShareGroupStateResponseData;
import org.apache.kafka.common.message.ReadShareGroupStateSummaryRequestData;
import org.apache.kafka.common.message.ReadShareGroupStateSummaryResponseData;
import org.apache.kafka.common.message.WriteShareGroupStateRequestData;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataImage;
import org.apache.kafka.coordinator.share.metrics.ShareCoordinatorMetrics;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.server.share.persister.PartitionStateBatchData;
import org.apache.kafka.timeline.SnapshotRegistry;

/** A ShareCoordinatorShard that replays its records at once; all is about one share partition. */
public final class StateShard {
    private static final Uuid TOPIC = new Uuid(1, 1);
    private static final int STATE_EPOCH = 1;

    private final ShareCoordinatorShard shard;
    private long offset = 0;

    public StateShard() {
        shard = new ShareCoordinatorShard.Builder(new ShareCoordinatorConfig(
                new AbstractConfig(ShareCoordinatorConfig.CONFIG_DEF, Map.of(), false)))
            .withLogContext(Logs.context())
            .withSnapshotRegistry(new SnapshotRegistry(Logs.context()))
            .withTime(Time.SYSTEM)
            .withCoordinatorMetrics(new ShareCoordinatorMetrics())
            .withTopicPartition(new TopicPartition("__share_group_state", 0))
            .build();
        MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        delta.replay(new TopicRecord().setTopicId(TOPIC).setName("topic"));
        delta.replay(new PartitionRecord().setTopicId(TOPIC).setPartitionId(0).setReplicas(List.of(0)));
        shard.onLoaded(new KRaftCoordinatorMetadataImage(delta.apply(new MetadataProvenance(0, 0, 0L, true))));
    }

    static WriteShareGroupStateRequestData.StateBatch acknowledged(long first, long last) {
        return batch(first, last, (byte) 2, (short) 2);
    }

    static WriteShareGroupStateRequestData.StateBatch archived(long first, long last) {
        return batch(first, last, (byte) 4, (short) 1);
    }

    private static WriteShareGroupStateRequestData.StateBatch batch(long first, long last, byte state, short count) {
        return new WriteShareGroupStateRequestData.StateBatch()
            .setFirstOffset(first).setLastOffset(last).setDeliveryState(state).setDeliveryCount(count);
    }

    public Errors initialize(long startOffset) {
        return Errors.forCode(replayed(shard.initializeState(new InitializeShareGroupStateRequestData().setGroupId("group")
            .setTopics(List.of(new InitializeShareGroupStateRequestData.InitializeStateData().setTopicId(TOPIC)
                .setPartitions(List.of(new InitializeShareGroupStateRequestData.PartitionData()
                    .setPartition(0).setStateEpoch(STATE_EPOCH).setStartOffset(startOffset)))))))
            .results().get(0).partitions().get(0).errorCode());
    }

    Errors write(long startOffset, int deliveryCompleteCount, WriteShareGroupStateRequestData.StateBatch... batches) {
        return Errors.forCode(replayed(shard.writeState(new WriteShareGroupStateRequestData().setGroupId("group")
            .setTopics(List.of(new WriteShareGroupStateRequestData.WriteStateData().setTopicId(TOPIC)
                .setPartitions(List.of(new WriteShareGroupStateRequestData.PartitionData()
                    .setPartition(0).setStateEpoch(STATE_EPOCH).setLeaderEpoch(3).setStartOffset(startOffset)
                    .setDeliveryCompleteCount(deliveryCompleteCount).setStateBatches(List.of(batches))))))))
            .results().get(0).partitions().get(0).errorCode());
    }

    /** Carry out the write of a leader. */
    public Errors write(PartitionStateBatchData write) {
        return write(write.startOffset(), write.deliveryCompleteCount(), write.stateBatches().stream()
            .map(batch -> batch(batch.firstOffset(), batch.lastOffset(), batch.deliveryState(), batch.deliveryCount()))
            .toArray(WriteShareGroupStateRequestData.StateBatch[]::new));
    }

    /** What a leader reads when it begins: the start offset, then the state batches, as in "0: 5-9". */
    String read() {
        ReadShareGroupStateResponseData.PartitionResult result = replayed(shard.readStateAndMaybeUpdateLeaderEpoch(
            new ReadShareGroupStateRequestData().setGroupId("group")
                .setTopics(List.of(new ReadShareGroupStateRequestData.ReadStateData().setTopicId(TOPIC)
                    .setPartitions(List.of(new ReadShareGroupStateRequestData.PartitionData()
                        .setPartition(0).setLeaderEpoch(3)))))))
            .results().get(0).partitions().get(0);
        Stream<String> batches = result.stateBatches().stream()
            .map(batch -> batch.firstOffset() + "-" + batch.lastOffset());
        return result.startOffset() + ": " + String.join(" ", batches.toList());
    }

    public int deliveryCompleteCount() {
        ReadShareGroupStateSummaryResponseData response = replayed(shard.readStateSummary(
            new ReadShareGroupStateSummaryRequestData().setGroupId("group")
                .setTopics(List.of(new ReadShareGroupStateSummaryRequestData.ReadStateSummaryData().setTopicId(TOPIC)
                    .setPartitions(List.of(new ReadShareGroupStateSummaryRequestData.PartitionData()
                        .setPartition(0).setLeaderEpoch(3)))))));
        return response.results().get(0).partitions().get(0).deliveryCompleteCount();
    }

    private <T> T replayed(CoordinatorResult<T, CoordinatorRecord> result) {
        result.records().forEach(record -> shard.replay(offset++, -1L, (short) -1, record));
        return result.response();
    }
}
