/** Fastify: the recipe without an adapter of its own. Its router would refuse some paths before any hook. */
import { createServer } from 'node:http'
import Fastify from 'fastify'
import { type NodeHandler, toNodeHandler } from '../../../src/adapters/node.js'
import { carried } from '../handlers.js'
import { tell } from './listen.js'

const [diagnostics, subject] = carried.map((handler) => toNodeHandler(handler)) as [NodeHandler, NodeHandler]
const app = Fastify({
  serverFactory: (handle) =>
    createServer((req, res) => diagnostics(req, res, () => subject(req, res, () => handle(req, res)))),
})
app.get('/hosts-own', async () => 'own')
await app.listen({ host: '127.0.0.1', port: 0 })
tell(app.server)
