/** Hono on Node, served by our own Node adapter. */
import { createServer } from 'node:http'
import { toNodeHandler } from '../../../src/adapters/node.js'
import { app } from './hono-app.js'
import { listen } from './listen.js'

listen(createServer(toNodeHandler(app.fetch)))
