"""Makes cyclone.txt: the type information and type map in the C that Cyclone DDS's idlc made of cyclone.idl.

    idlc -l c cyclone.idl && python3 cyclone.py cyclone.c > cyclone.txt
"""
import re
import sys

text = open(sys.argv[1]).read()
blobs = re.findall(r"#define TYPE_(INFO|MAP)_CDR_(\w+) \(const unsigned char \[\]\)\{(.*?)\}", text, re.S)
of = {}
for kind, name, body in blobs:
    of.setdefault(name, {})[kind] = "".join(byte[2:] for byte in re.findall(r"0x[0-9a-f]{2}", body))
names = {m.group(2): m.group(1) for m in re.finditer(r'\.m_typename = "([^"]+)",.*?TYPE_INFO_CDR_(\w+)', text, re.S)}
for name, found in of.items():
    print(names[name], found["INFO"], found["MAP"])
