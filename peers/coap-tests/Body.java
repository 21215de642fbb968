/** What goes up and down in blocks. */
final class Body {
    static final byte[] BYTES = bytes(1 << 20);

    private Body() {}

    private static byte[] bytes(int length) {
        byte[] bytes = new byte[length];
        for (int at = 0; at < length; at++) {
            bytes[at] = (byte) (at * 7 + at / 251);
        }
        return bytes;
    }
}
