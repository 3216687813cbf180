/** Node's own HTTP server. */
import { createServer } from 'node:http'
import { toNodeHandler } from '../../../src/adapters/node.js'
import { subject } from '../subject.js'
import { listen } from './listen.js'

listen(createServer(toNodeHandler(subject)))
