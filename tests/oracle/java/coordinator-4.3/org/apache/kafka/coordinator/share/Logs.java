package org.apache.kafka.coordinator.share;

import org.apache.kafka.common.utils.LogContext;

/** The log context, whose package 4.4 has moved. */
final class Logs {
    private Logs() { }

    static LogContext context() {
        return new LogContext();
    }
}
