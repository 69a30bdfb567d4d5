package org.apache.kafka.coordinator.group;

import java.net.InetAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.message.ShareGroupDescribeResponseData;
import org.apache.kafka.common.message.ShareGroupHeartbeatRequestData;
import org.apache.kafka.common.message.ShareGroupHeartbeatResponseData;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.common.runtime.MockCoordinatorExecutor;
import org.apache.kafka.coordinator.group.api.assignor.ShareGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.generated.ShareGroupCurrentMemberAssignmentKey;
import org.apache.kafka.coordinator.group.generated.ShareGroupCurrentMemberAssignmentValue;
import org.apache.kafka.coordinator.group.generated.ShareGroupMemberMetadataKey;
import org.apache.kafka.coordinator.group.generated.ShareGroupMemberMetadataValue;
import org.apache.kafka.coordinator.group.generated.ShareGroupMetadataKey;
import org.apache.kafka.coordinator.group.generated.ShareGroupMetadataValue;
import org.apache.kafka.coordinator.group.generated.ShareGroupStatePartitionMetadataKey;
import org.apache.kafka.coordinator.group.generated.ShareGroupStatePartitionMetadataValue;
import org.apache.kafka.coordinator.group.generated.ShareGroupTargetAssignmentMemberKey;
import org.apache.kafka.coordinator.group.generated.ShareGroupTargetAssignmentMemberValue;
import org.apache.kafka.coordinator.group.generated.ShareGroupTargetAssignmentMetadataKey;
import org.apache.kafka.coordinator.group.generated.ShareGroupTargetAssignmentMetadataValue;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetricsShard;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateParameters;
import org.apache.kafka.timeline.SnapshotRegistry;

/** What stands around a GroupMetadataManager: a clock that stands still, Kafka's mock timer and executor, records replayed at once. Share groups only. */
final class GroupContext {
    static final class Clock implements Time {
        private long now = 1000;

        @Override
        public long milliseconds() {
            return now;
        }

        @Override
        public long nanoseconds() {
            return TimeUnit.MILLISECONDS.toNanos(now);
        }

        @Override
        public void sleep(long ms) {
            now += ms;
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadline) {
            throw new UnsupportedOperationException("nothing waits here");
        }
    }

    final Clock time;
    final GroupRelease.Timer timer;
    final MockCoordinatorExecutor<CoordinatorRecord> executor = new MockCoordinatorExecutor<>();
    final GroupMetadataManager groupMetadataManager;
    private final SnapshotRegistry snapshots = GroupRelease.snapshots();
    private final Map<String, Object> config;
    private final ShareGroupPartitionAssignor assignor;
    private final List<CoordinatorRecord> log = new ArrayList<>();
    private long written = 0;
    private long committed = 0;

    GroupContext(Map<String, Object> config, CoordinatorMetadataImage image, ShareGroupPartitionAssignor assignor, Clock time) {
        this.config = config;
        this.assignor = assignor;
        this.time = time;
        timer = new GroupRelease.Timer(time);
        groupMetadataManager = GroupRelease.manager()
            .withSnapshotRegistry(snapshots)
            .withTime(time)
            .withTimer(timer)
            .withExecutor(executor)
            .withConfig(new GroupCoordinatorConfig(new AbstractConfig(GroupCoordinatorConfig.CONFIG_DEF, config)))
            .withMetadataImage(image)
            .withGroupCoordinatorMetricsShard(new GroupCoordinatorMetricsShard(snapshots, Map.of(), new TopicPartition("__consumer_offsets", 0)))
            .withShareGroupAssignor(assignor)
            .withGroupConfigManager(GroupRelease.groupConfigs())
            .withAuthorizerPlugin(Optional.empty())
            .build();
        snapshots.idempotentCreateSnapshot(written);
    }

    /** What another broker has once it has read all records so far. */
    GroupContext reloaded(CoordinatorMetadataImage image) {
        GroupContext other = new GroupContext(config, image, assignor, time);
        log.forEach(other::replay);
        other.groupMetadataManager.onLoaded();
        other.commit();
        return other;
    }

    void commit() {
        snapshots.deleteSnapshotsUpTo(committed);
        committed = written;
    }

    /** What an error leaves behind is taken back, as CoordinatorRuntime does. */
    void revert() {
        snapshots.revertToSnapshot(written);
    }

    CoordinatorResult<Map.Entry<ShareGroupHeartbeatResponseData, Optional<InitializeShareGroupStateParameters>>, CoordinatorRecord> shareGroupHeartbeat(
        ShareGroupHeartbeatRequestData request
    ) {
        RequestHeader header = new RequestHeader(ApiKeys.SHARE_GROUP_HEARTBEAT, ApiKeys.SHARE_GROUP_HEARTBEAT.latestVersion(), "client", 0);
        var result = groupMetadataManager.shareGroupHeartbeat(
            new RequestContext(header, "1", InetAddress.getLoopbackAddress(), KafkaPrincipal.ANONYMOUS,
                ListenerName.forSecurityProtocol(SecurityProtocol.PLAINTEXT), SecurityProtocol.PLAINTEXT, ClientInformation.EMPTY, false),
            request);
        result.records().forEach(this::replay);
        return result;
    }

    /** All that are due are run before any of their records is replayed; tell is told the key and the records of each. */
    void sleep(long ms, BiConsumer<String, List<CoordinatorRecord>> tell) {
        time.sleep(ms);
        var expired = timer.poll();
        expired.forEach(timeout -> replay(timeout.result()));
        expired.forEach(timeout -> tell.accept(timeout.key(), timeout.result().records()));
    }

    List<MockCoordinatorExecutor.ExecutorResult<CoordinatorRecord>> processTasks() {
        var done = executor.poll();
        done.forEach(task -> replay(task.result()));
        return done;
    }

    List<ShareGroupDescribeResponseData.DescribedGroup> sendShareGroupDescribe(List<String> groups) {
        return groupMetadataManager.shareGroupDescribe(groups, committed);
    }

    private void replay(CoordinatorResult<Void, CoordinatorRecord> result) {
        if (result.replayRecords())
            result.records().forEach(this::replay);
    }

    void replay(CoordinatorRecord record) {
        ApiMessage value = record.value() == null ? null : record.value().message();
        switch (record.key().apiKey()) {
            case 10 -> groupMetadataManager.replay((ShareGroupMemberMetadataKey) record.key(), (ShareGroupMemberMetadataValue) value);
            case 11 -> groupMetadataManager.replay((ShareGroupMetadataKey) record.key(), (ShareGroupMetadataValue) value);
            case 12 -> groupMetadataManager.replay((ShareGroupTargetAssignmentMetadataKey) record.key(), (ShareGroupTargetAssignmentMetadataValue) value);
            case 13 -> groupMetadataManager.replay((ShareGroupTargetAssignmentMemberKey) record.key(), (ShareGroupTargetAssignmentMemberValue) value);
            case 14 -> groupMetadataManager.replay((ShareGroupCurrentMemberAssignmentKey) record.key(), (ShareGroupCurrentMemberAssignmentValue) value);
            case 15 -> groupMetadataManager.replay((ShareGroupStatePartitionMetadataKey) record.key(), (ShareGroupStatePartitionMetadataValue) value);
            default -> throw new IllegalStateException("record " + record);
        }
        log.add(record);
        snapshots.idempotentCreateSnapshot(++written);
    }
}
