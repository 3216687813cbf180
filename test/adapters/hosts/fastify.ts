/** Fastify: the recipe without an adapter of its own. */
import Fastify from 'fastify'
import { toNodeHandler } from '../../../src/adapters/node.js'
import { subject } from '../subject.js'
import { tell } from './listen.js'

const app = Fastify()
const handle = toNodeHandler(subject)
app.addHook('onRequest', (request, reply, done) => {
  let passed = false
  handle(request.raw, reply.raw, () => {
    passed = true
  })
  if (passed) return done()
  reply.hijack()
})
app.get('/hosts-own', async () => 'own')
await app.listen({ host: '127.0.0.1', port: 0 })
tell(app.server)
