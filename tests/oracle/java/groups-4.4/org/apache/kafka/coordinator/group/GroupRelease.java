package org.apache.kafka.coordinator.group;

import java.util.Map;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.MockCoordinatorTimer;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.timeline.SnapshotRegistry;

/** What 4.4 names or builds otherwise than another release. */
final class GroupRelease {
    static final class Timer extends MockCoordinatorTimer<CoordinatorRecord> {
        Timer(Time time) {
            super(time);
        }
    }

    private GroupRelease() { }

    static SnapshotRegistry snapshots() {
        return new SnapshotRegistry(new LogContext());
    }

    static GroupMetadataManager.Builder manager() {
        return new GroupMetadataManager.Builder().withLogContext(new LogContext());
    }

    static GroupConfigManager groupConfigs() {
        GroupCoordinatorConfig config = GroupCoordinatorConfig.fromProps(Map.of());
        ShareGroupConfig share = ShareGroupConfig.fromProps(Map.of());
        return new GroupConfigManager(config, share);
    }

    static void update(GroupMetadataManager manager, CoordinatorMetadataDelta delta, CoordinatorMetadataImage image) {
        manager.onMetadataUpdate(delta, image);
    }
}
