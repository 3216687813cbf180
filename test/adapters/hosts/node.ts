/** Node's own HTTP server. */
import { createServer } from 'node:http'
import { type NodeHandler, toNodeHandler } from '../../../src/adapters/node.js'
import { carried } from '../handlers.js'
import { listen } from './listen.js'

const [diagnostics, subject] = carried.map((handler) => toNodeHandler(handler)) as [NodeHandler, NodeHandler]
listen(createServer((req, res) => diagnostics(req, res, () => subject(req, res))))
