package kafka.server.share;

import java.util.Objects;

/** What has to hold before a test asks its question: where it does not, the test is in error and has not failed. */
final class Given {
    private Given() { }

    static void that(Object expected, Object actual) {
        if (!Objects.equals(expected, actual))
            throw new IllegalStateException("given was " + expected + ", but it is " + actual);
    }
}
