package org.apache.kafka.coordinator.share;

import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;

/** How a ShareCoordinatorService is made and told of topics, from 4.3 on. */
final class StateServices {
    private StateServices() { }

    static ShareCoordinatorService.Builder builder(ShareCoordinatorConfig config) {
        return new ShareCoordinatorService.Builder(0, config);
    }

    static void update(ShareCoordinatorService service, MetadataDelta delta, MetadataImage image) {
        service.onMetadataUpdate(delta, image);
    }
}
