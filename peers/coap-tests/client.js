// The steps of the CoAP tests with node-coap as client; peers/README.md has them. NODE_PATH says where the package is.
'use strict'

const coap = require('coap')

const BODY = Buffer.from(Array.from({ length: 1 << 20 }, (_, at) => (at * 7 + Math.floor(at / 251)) & 255))
const [steps, base] = process.argv.slice(2)
const { hostname, port } = new URL(base.replace('coap:', 'http:'))

function request (method, target, payload, options = {}) {
  const [pathname, query] = target.split('?')
  return new Promise((resolve, reject) => {
    const sent = coap.request({ hostname, port: Number(port || 5683), pathname, query, method, ...options })
    for (const [name, value] of options.more ?? []) sent.setOption(name, value)
    sent.on('response', resolve)
    sent.on('error', reject)
    sent.end(payload)
  })
}

function read (response) {
  return new Promise((resolve, reject) => {
    const parts = []
    response.on('data', (part) => parts.push(part))
    response.on('end', () => resolve(Buffer.concat(parts)))
    response.on('error', reject)
  })
}

function tell (step, response, payload) {
  const text = payload.length === BODY.length ? `body ${payload.equals(BODY) ? 'True' : 'False'}` : payload.toString()
  process.stdout.write(`${step}\t${response.code}\t${text}\n`)
}

async function ask (step, method, target, payload, options) {
  const response = await request(method, target, payload, options)
  tell(step, response, await read(response))
}

async function observe () {
  const states = await request('GET', '/note', undefined, { observe: true, agent: new coap.Agent() })
  const next = () => new Promise((resolve) => states.once('data', resolve))
  tell('observe', states, await next())
  for (const text of ['one', 'two', 'three']) {
    const state = next()
    await read(await request('PUT', '/note', text))
    tell('notification', states, await state)
  }
  states.close()
}

async function main () {
  if (steps === 'get') {
    await ask('get', 'GET', new URL(base.replace('coap:', 'http:')).pathname)
    return process.exit(0)
  }
  await ask('con', 'GET', '/hello')
  await ask('non', 'GET', '/hello', undefined, { confirmable: false })
  await ask('slow', 'GET', '/slow?ms=1500')
  await ask('core', 'GET', '/.well-known/core?rt=lamp')
  await ask('missing', 'GET', '/missing')
  await ask('critical', 'GET', '/hello', undefined, { more: [['65001', Buffer.from('x')]] })
  await ask('elective', 'GET', '/hello', undefined, { more: [['65000', Buffer.from('x')]] })
  await ask('put', 'PUT', '/note', 'start')
  await ask('post', 'POST', '/note', 'ed')
  await ask('get', 'GET', '/note')
  await ask('ipatch', 'iPATCH', '/settings', 'color=red')
  await ask('fetch', 'FETCH', '/settings', 'color')
  await observe()
  await ask('delete', 'DELETE', '/note')
  await ask('up', 'PUT', '/body', BODY, { more: [['Block1', Buffer.from([6])]] })
  await ask('down', 'GET', '/body')
  // The end of an observation is told only by rejecting a confirmable notification; it comes 5 s after a change.
  setTimeout(() => process.exit(0), 6000)
}

main().catch((error) => {
  process.stderr.write(`${error.stack}\n`)
  process.exit(1)
})
