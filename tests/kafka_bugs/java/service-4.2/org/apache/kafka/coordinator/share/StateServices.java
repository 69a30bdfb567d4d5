package org.apache.kafka.coordinator.share;

import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataImage;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;

/** How 4.2 makes a ShareCoordinatorService, and tells it of topics. */
final class StateServices {
    private StateServices() { }

    static ShareCoordinatorService.Builder builder(ShareCoordinatorConfig config) {
        return new ShareCoordinatorService.Builder(0, config).withShareGroupEnabledConfigSupplier(() -> true);
    }

    static void update(ShareCoordinatorService service, MetadataDelta delta, MetadataImage image) {
        service.onNewMetadataImage(
            new KRaftCoordinatorMetadataImage(image), image.features(), new KRaftCoordinatorMetadataDelta(delta));
    }
}
