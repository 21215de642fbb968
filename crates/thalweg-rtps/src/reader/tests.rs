//! Laws of the reader, checked message by message.
