package kafka.server;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.coordinator.share.ShareCoordinatorConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.storage.internals.log.LogConfig;

/** Driver around Kafka's real configs: one JSON request per stdin line, one JSON response per stdout line. */
public final class ConfigsDriver {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String GROUP = "g";

    /** What is not named after share groups, and bounds one of their settings. */
    private static final Set<String> OTHERS = Set.of("offsets.commit.timeout.ms");

    /** A broker needs these to start; share groups do not look at them. */
    private static final Map<String, String> BROKER = Map.of(
        "process.roles", "broker,controller", "node.id", "1", "listeners", "PLAINTEXT://:0,CONTROLLER://:1",
        "controller.listener.names", "CONTROLLER", "controller.quorum.bootstrap.servers", "localhost:1",
        "listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT");

    /** What GroupConfig says of each setting of a group; it says nothing of what a release has not, or has not set. */
    private static final Map<String, String> GETTERS = Map.ofEntries(
        Map.entry("share.session.timeout.ms", "shareSessionTimeoutMs"),
        Map.entry("share.heartbeat.interval.ms", "shareHeartbeatIntervalMs"),
        Map.entry("share.record.lock.duration.ms", "shareRecordLockDurationMs"),
        Map.entry("share.delivery.count.limit", "shareDeliveryCountLimit"),
        Map.entry("share.partition.max.record.locks", "sharePartitionMaxRecordLocks"),
        Map.entry("share.auto.offset.reset", "shareAutoOffsetReset"),
        Map.entry("share.isolation.level", "shareIsolationLevel"),
        Map.entry("share.renew.acknowledge.enable", "shareRenewAcknowledgeEnable"),
        Map.entry("share.assignment.interval.ms", "shareAssignmentIntervalMs"),
        Map.entry("share.assignor.offload.enable", "shareAssignorOffloadEnable"),
        Map.entry("errors.deadletterqueue.topic.name", "errorsDLQTopicName"),
        Map.entry("errors.deadletterqueue.copy.record.enable", "errorsDLQCopyRecordEnable"));

    private ConfigsDriver() { }

    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(
            new BufferedOutputStream(new FileOutputStream(FileDescriptor.out), 1 << 16), false, StandardCharsets.UTF_8);
        System.setOut(System.err); // stdout is for responses only
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<String, Object> response = new LinkedHashMap<>();
            try {
                response.put("result", run(JSON.readTree(line)));
            } catch (Throwable t) {
                response.put("raised", Map.of("exception", t.getClass().getSimpleName(), "message", String.valueOf(t.getMessage())));
            }
            out.println(JSON.writeValueAsString(response));
            if (!in.ready())
                out.flush();
        }
        out.flush();
    }

    private static Object run(JsonNode request) throws Exception {
        return switch (request.path("op").asText()) {
            case "keys" -> keys();
            case "other_keys" -> otherKeys();
            case "settings" -> settings(request);
            case "properties" -> properties(request);
            default -> throw new IllegalArgumentException("op: " + request.path("op").asText());
        };
    }

    /** Every key about share groups, in the order in which values are parsed. */
    private static List<Object> keys() throws Exception {
        List<Object> rows = new ArrayList<>();
        Set<String> dynamic = dynamicConfigs();
        Map<String, String> owners = new HashMap<>();
        ShareGroupConfig.CONFIG_DEF.names().forEach(name -> owners.put(name, "ShareGroupConfig"));
        GroupCoordinatorConfig.CONFIG_DEF.names().forEach(name -> owners.put(name, "GroupCoordinatorConfig"));
        ShareCoordinatorConfig.CONFIG_DEF.names().forEach(name -> owners.put(name, "ShareCoordinatorConfig"));
        for (ConfigDef.ConfigKey key : AbstractKafkaConfig.CONFIG_DEF.configKeys().values())
            if (isOfShareGroups(key.name))
                rows.add(row(owners.getOrDefault(key.name, "AbstractKafkaConfig"), key, dynamic.contains(key.name), null));
        for (ConfigDef.ConfigKey key : groupConfigDef().configKeys().values())
            if (isOfShareGroups(key.name))
                rows.add(row("GroupConfig", key, true, synonym(key.name)));
        for (ConfigDef.ConfigKey key : LogConfig.configKeys().values())
            if (isOfShareGroups(key.name))
                rows.add(row("LogConfig", key, true, null));
        return rows;
    }

    /** Every key of groups that are not share groups, and of brokers those that are their defaults and bounds. */
    private static List<Object> otherKeys() throws Exception {
        List<Object> rows = new ArrayList<>();
        for (ConfigDef.ConfigKey key : groupConfigDef().configKeys().values())
            if (!isOfShareGroups(key.name))
                rows.add(row("GroupConfig", key, true, synonym(key.name)));
        for (ConfigDef.ConfigKey key : AbstractKafkaConfig.CONFIG_DEF.configKeys().values())
            if (key.name.startsWith("group.consumer.") || key.name.startsWith("group.streams."))
                rows.add(row("GroupCoordinatorConfig", key, dynamicConfigs().contains(key.name), null));
        return rows;
    }

    private static boolean isOfShareGroups(String name) {
        return name.startsWith("group.share.") || name.startsWith("share.") || name.startsWith("errors.deadletterqueue.") || OTHERS.contains(name);
    }

    private static Map<String, Object> row(String owner, ConfigDef.ConfigKey key, boolean dynamic, String synonym) {
        Map<String, Object> row = new LinkedHashMap<>();
        row.put("class", owner);
        row.put("name", key.name);
        row.put("type", key.type.name());
        row.put("default", key.defaultValue);
        row.put("valid", key.validator == null ? null : key.validator.toString());
        row.put("importance", key.importance.name());
        row.put("internal", key.internalConfig);
        row.put("dynamic", dynamic);
        row.put("synonym", synonym);
        row.put("documentation", key.documentation);
        return row;
    }

    private static ConfigDef groupConfigDef() throws Exception {
        try {
            return (ConfigDef) GroupConfig.class.getField("CONFIG_DEF").get(null);
        } catch (NoSuchFieldException e) {
            return (ConfigDef) GroupConfig.class.getMethod("configDef").invoke(null); // 4.2
        }
    }

    private static String synonym(String name) throws Exception {
        try {
            return (String) ((Optional<?>) GroupConfig.class.getMethod("brokerSynonym", String.class).invoke(null, name)).orElse(null);
        } catch (NoSuchMethodException e) {
            return null; // 4.2
        }
    }

    @SuppressWarnings("unchecked")
    private static Set<String> dynamicConfigs() throws Exception {
        try {
            return (Set<String>) Class.forName("org.apache.kafka.server.config.DynamicBrokerConfig").getField("ALL_DYNAMIC_CONFIGS").get(null);
        } catch (ClassNotFoundException e) { // 4.2
            Object set = DynamicBrokerConfig.class.getMethod("AllDynamicConfigs").invoke(null);
            return scala.jdk.javaapi.CollectionConverters.asJava((scala.collection.Set<String>) set);
        }
    }

    /** What a broker starts with, and then, if a group has settings, what is made of them: when they are given, or when they are loaded. */
    private static Object settings(JsonNode request) throws Exception {
        Properties broker = new Properties();
        broker.putAll(BROKER);
        request.path("broker").properties().forEach(entry -> broker.setProperty(entry.getKey(), entry.getValue().asText()));
        KafkaConfig config = KafkaConfig.fromProps(broker, false);
        Map<String, Object> values = new TreeMap<>();
        for (ConfigDef.ConfigKey key : AbstractKafkaConfig.CONFIG_DEF.configKeys().values())
            if (isOfShareGroups(key.name))
                values.put(key.name, config.values().get(key.name));
        values.put("group.share.initialize.retry.interval.ms", config.groupCoordinatorConfig().shareGroupInitializeRetryIntervalMs());
        Map<String, String> group = new LinkedHashMap<>();
        request.path("group").properties().forEach(entry -> group.put(entry.getKey(), entry.getValue().asText()));
        if (group.isEmpty())
            return values;
        if (!request.path("loaded").asBoolean())
            new ControllerConfigurationValidator(config).validate(new ConfigResource(ConfigResource.Type.GROUP, GROUP), group, Map.of());
        GroupConfigManager manager = manager(config);
        Properties given = new Properties();
        given.putAll(group);
        manager.updateGroupConfig(GROUP, given);
        GroupConfig found = manager.groupConfig(GROUP).orElseThrow();
        for (Map.Entry<String, String> getter : GETTERS.entrySet())
            value(found, getter.getValue()).ifPresent(value -> values.put(getter.getKey(), value));
        return values;
    }

    private static GroupConfigManager manager(KafkaConfig config) throws Exception {
        GroupCoordinatorConfig coordinator = config.groupCoordinatorConfig();
        ShareGroupConfig share = config.shareGroupConfig();
        Constructor<?> constructor = GroupConfigManager.class.getConstructors()[0];
        if (constructor.getParameterCount() == 2)
            return (GroupConfigManager) constructor.newInstance(coordinator, share);
        Object defaults = GroupCoordinatorConfig.class.getMethod("extractGroupConfigMap", ShareGroupConfig.class).invoke(coordinator, share);
        return (GroupConfigManager) (constructor.getParameterCount() == 1
            ? constructor.newInstance(defaults) : constructor.newInstance(defaults, coordinator, share));
    }

    private static Optional<Object> value(GroupConfig config, String getter) throws Exception {
        Method method;
        try {
            method = GroupConfig.class.getMethod(getter);
        } catch (NoSuchMethodException e) {
            return Optional.empty();
        }
        Object value = method.invoke(config);
        if (value instanceof Optional<?> optional)
            value = optional.orElse(null);
        return Optional.ofNullable(value).map(ConfigsDriver::json);
    }

    private static Object json(Object value) {
        return value instanceof Integer || value instanceof Boolean ? value : value.toString();
    }

    private static Object properties(JsonNode request) throws IOException {
        Properties properties = new Properties();
        properties.load(new ByteArrayInputStream(Base64.getDecoder().decode(request.path("bytes").asText())));
        return new TreeMap<>(properties);
    }
}
