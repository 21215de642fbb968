import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.eclipse.californium.core.CoapResource;
import org.eclipse.californium.core.CoapServer;
import org.eclipse.californium.core.coap.CoAP.ResponseCode;
import org.eclipse.californium.core.coap.MediaTypeRegistry;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.core.server.resources.CoapExchange;
import org.eclipse.californium.elements.UDPConnector;
import org.eclipse.californium.elements.UdpMulticastConnector;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.config.UdpConfig;

/** The resources of the CoAP tests with Californium as server; {@code peers/README.md} has them. */
public final class Server {
    private Server() {}

    public static void main(String[] arguments) throws IOException, GeneralSecurityException {
        CoapConfig.register();
        UdpConfig.register();
        Configuration configuration = new Configuration();
        configuration.set(CoapConfig.MAX_RESOURCE_BODY_SIZE, 2 << 20);
        configuration.set(CoapConfig.PREFERRED_BLOCK_SIZE, 1024);
        int colon = arguments[0].lastIndexOf(':');
        InetAddress address = InetAddress.getByName(arguments[0].substring(0, colon));
        int port = Integer.parseInt(arguments[0].substring(colon + 1));
        UDPConnector connector = new UDPConnector(new InetSocketAddress(address, port), configuration);
        connector.setReuseAddress(true);
        if (arguments.length == 2) {
            InetAddress group = InetAddress.getByName("224.0.1.187");
            UdpMulticastConnector.Builder groups = new UdpMulticastConnector.Builder();
            groups.setLocalAddress(group, port);
            groups.addMulticastGroup(group, NetworkInterface.getByName(arguments[1]));
            connector.addMulticastReceiver(groups.setMulticastReceiver(true).build());
        }
        CoapServer server = new CoapServer(configuration);
        server.addEndpoint(CoapEndpoint.builder().setConfiguration(configuration).setConnector(connector).build());
        if (arguments.length > 3) {
            // The port of DTLS and the credentials.
            InetSocketAddress secure = new InetSocketAddress(address, Integer.parseInt(arguments[1]));
            String[] credentials = Arrays.copyOfRange(arguments, 2, arguments.length);
            server.addEndpoint(Dtls.server(configuration, secure, credentials));
        }
        server.add(new Hello(), new Slow(), new Note(), new Large(), new Settings());
        server.start();
        System.out.println("serving");
        while (System.in.read() >= 0) {
            // Nothing is said; the end of the input ends the server.
        }
        System.exit(0);
    }

    private static final class Hello extends CoapResource {
        Hello() {
            super("hello");
            getAttributes().addResourceType("lamp");
        }

        @Override
        public void handleGET(CoapExchange exchange) {
            exchange.respond("hello world");
        }
    }

    private static final class Slow extends CoapResource {
        Slow() {
            super("slow");
        }

        @Override
        public void handleGET(CoapExchange exchange) {
            exchange.accept();
            try {
                Thread.sleep(Long.parseLong(exchange.getQueryParameter("ms")));
            } catch (InterruptedException interruption) {
                Thread.currentThread().interrupt();
            }
            exchange.respond("waited");
        }
    }

    private static final class Note extends CoapResource {
        private volatile String text = "";

        Note() {
            super("note");
            setObservable(true);
            getAttributes().setObservable();
        }

        @Override
        public void handleGET(CoapExchange exchange) {
            exchange.respond(text);
        }

        @Override
        public void handlePUT(CoapExchange exchange) {
            change(exchange, exchange.getRequestText(), ResponseCode.CHANGED);
        }

        @Override
        public void handlePOST(CoapExchange exchange) {
            change(exchange, text + exchange.getRequestText(), ResponseCode.CHANGED);
        }

        @Override
        public void handleDELETE(CoapExchange exchange) {
            change(exchange, "", ResponseCode.DELETED);
        }

        private void change(CoapExchange exchange, String changed, ResponseCode code) {
            text = changed;
            exchange.respond(code);
            changed();
        }
    }

    private static final class Large extends CoapResource {
        Large() {
            super("body");
        }

        @Override
        public void handleGET(CoapExchange exchange) {
            exchange.respond(ResponseCode.CONTENT, Body.BYTES, MediaTypeRegistry.APPLICATION_OCTET_STREAM);
        }

        @Override
        public void handlePUT(CoapExchange exchange) {
            boolean isWhole = Arrays.equals(exchange.getRequestPayload(), Body.BYTES);
            exchange.respond(isWhole ? ResponseCode.CHANGED : ResponseCode.BAD_REQUEST);
        }
    }

    private static final class Settings extends CoapResource {
        private final Map<String, String> values = new ConcurrentHashMap<>();

        Settings() {
            super("settings");
        }

        @Override
        public void handleFETCH(CoapExchange exchange) {
            exchange.respond(values.getOrDefault(exchange.getRequestText(), ""));
        }

        @Override
        public void handleIPATCH(CoapExchange exchange) {
            String[] parts = new String(exchange.getRequestPayload(), StandardCharsets.UTF_8).split("=", 2);
            values.put(parts[0], parts[1]);
            exchange.respond(ResponseCode.CHANGED);
        }
    }
}
