import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.util.Arrays;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.util.SslContextUtil;
import org.eclipse.californium.scandium.DTLSConnector;
import org.eclipse.californium.scandium.config.DtlsConfig;
import org.eclipse.californium.scandium.config.DtlsConfig.DtlsRole;
import org.eclipse.californium.scandium.config.DtlsConnectorConfig;
import org.eclipse.californium.scandium.dtls.cipher.CipherSuite;
import org.eclipse.californium.scandium.dtls.pskstore.AdvancedSinglePskStore;
import org.eclipse.californium.scandium.dtls.x509.SingleCertificateProvider;
import org.eclipse.californium.scandium.dtls.x509.StaticNewAdvancedCertificateVerifier;

/**
 * Californium's endpoints with DTLS, for {@link Client} and {@link Server}. The credentials are an identity and its key, or three
 * files in PEM: the own certificate, its private key, and the certificates that are believed.
 */
final class Dtls {
    static {
        DtlsConfig.register();
    }

    private Dtls() {}

    static CoapEndpoint client(Configuration configuration, String... credentials)
            throws IOException, GeneralSecurityException {
        return endpoint(configuration, new InetSocketAddress(0), DtlsRole.CLIENT_ONLY, credentials);
    }

    static CoapEndpoint server(Configuration configuration, InetSocketAddress address, String... credentials)
            throws IOException, GeneralSecurityException {
        return endpoint(configuration, address, DtlsRole.SERVER_ONLY, credentials);
    }

    private static CoapEndpoint endpoint(
            Configuration configuration, InetSocketAddress address, DtlsRole role, String... credentials)
            throws IOException, GeneralSecurityException {
        DtlsConnectorConfig.Builder builder = DtlsConnectorConfig.builder(configuration);
        builder.set(DtlsConfig.DTLS_ROLE, role);
        builder.setAddress(address);
        if (credentials.length == 2) {
            byte[] key = credentials[1].getBytes(StandardCharsets.UTF_8);
            builder.set(DtlsConfig.DTLS_CIPHER_SUITES, Arrays.asList(CipherSuite.TLS_PSK_WITH_AES_128_CCM_8));
            builder.setAdvancedPskStore(new AdvancedSinglePskStore(credentials[0], key));
        } else {
            builder.setCertificateIdentityProvider(new SingleCertificateProvider(
                    SslContextUtil.loadPrivateKey(credentials[1], null, null, null),
                    SslContextUtil.loadCertificateChain(credentials[0], null, null)));
            builder.setAdvancedCertificateVerifier(StaticNewAdvancedCertificateVerifier.builder()
                    .setTrustedCertificates(SslContextUtil.loadTrustedCertificates(credentials[2], null, null))
                    .build());
        }
        DTLSConnector connector = new DTLSConnector(builder.build());
        return CoapEndpoint.builder().setConfiguration(configuration).setConnector(connector).build();
    }
}
