// The resources of the CoAP tests with node-coap as server; peers/README.md has them. NODE_PATH says where the package is.
'use strict'

const coap = require('coap')

const BODY = Buffer.from(Array.from({ length: 1 << 20 }, (_, at) => (at * 7 + Math.floor(at / 251)) & 255))
const [host, port] = process.argv[2].split(':')
const observers = new Set()
const settings = new Map()
let note = Buffer.alloc(0)

function answer (response, code, payload, format = 'text/plain') {
  response.code = code
  if (payload !== undefined) response.setOption('Content-Format', format)
  response.end(payload)
}

function change (response, content, code = '2.04') {
  note = content
  answer(response, code)
  for (const observer of observers) observer.write(note)
}

function serveNote (request, response) {
  if (request.method === 'GET' && request.headers.Observe === 0) {
    response.setOption('Content-Format', 'text/plain')
    observers.add(response)
    response.on('finish', () => observers.delete(response))
    return response.write(note)
  }
  switch (request.method) {
    case 'GET': return answer(response, '2.05', note)
    case 'PUT': return change(response, request.payload)
    case 'POST': return change(response, Buffer.concat([note, request.payload]))
    case 'DELETE': return change(response, Buffer.alloc(0), '2.02')
    default: return answer(response, '4.05')
  }
}

function serve (request, response) {
  const { pathname, searchParams } = new URL(request.url, 'coap://here')
  switch (pathname) {
    case '/hello': return answer(response, '2.05', 'hello world')
    case '/slow': return setTimeout(() => answer(response, '2.05', 'waited'), Number(searchParams.get('ms')))
    case '/.well-known/core': return answer(response, '2.05', '</hello>;rt="lamp"', 'application/link-format')
    case '/note': return serveNote(request, response)
    case '/body':
      if (request.method === 'GET') return answer(response, '2.05', BODY, 'application/octet-stream')
      return answer(response, request.payload.equals(BODY) ? '2.04' : '4.00')
    case '/settings': {
      const [name, value] = request.payload.toString().split('=')
      if (value === undefined) return answer(response, '2.05', settings.get(name) ?? '')
      settings.set(name, value)
      return answer(response, '2.04')
    }
    default: return answer(response, '4.04')
  }
}

const server = coap.createServer({ type: 'udp4' })
server.on('request', serve)
server.listen(Number(port), host, () => process.stdout.write('serving\n'))
process.stdin.on('end', () => process.exit(0)).resume()
