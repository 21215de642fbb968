import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.scandium.DTLSConnector;
import org.eclipse.californium.scandium.config.DtlsConfig;
import org.eclipse.californium.scandium.config.DtlsConfig.DtlsRole;
import org.eclipse.californium.scandium.config.DtlsConnectorConfig;
import org.eclipse.californium.scandium.dtls.cipher.CipherSuite;
import org.eclipse.californium.scandium.dtls.pskstore.AdvancedSinglePskStore;

/** Californium's endpoints with DTLS and one pre-shared key, for {@link Client} and {@link Server}. */
final class Dtls {
    static {
        DtlsConfig.register();
    }

    private Dtls() {}

    static CoapEndpoint client(Configuration configuration, String identity, String key) {
        return endpoint(configuration, new InetSocketAddress(0), DtlsRole.CLIENT_ONLY, identity, key);
    }

    static CoapEndpoint server(Configuration configuration, InetSocketAddress address, String identity, String key) {
        return endpoint(configuration, address, DtlsRole.SERVER_ONLY, identity, key);
    }

    private static CoapEndpoint endpoint(
            Configuration configuration, InetSocketAddress address, DtlsRole role, String identity, String key) {
        DtlsConnectorConfig.Builder builder = DtlsConnectorConfig.builder(configuration);
        builder.set(DtlsConfig.DTLS_ROLE, role);
        builder.set(DtlsConfig.DTLS_CIPHER_SUITES, Arrays.asList(CipherSuite.TLS_PSK_WITH_AES_128_CCM_8));
        builder.setAddress(address);
        builder.setAdvancedPskStore(new AdvancedSinglePskStore(identity, key.getBytes(StandardCharsets.UTF_8)));
        DTLSConnector connector = new DTLSConnector(builder.build());
        return CoapEndpoint.builder().setConfiguration(configuration).setConnector(connector).build();
    }
}
