//! Laws of the writer, checked message by message.
