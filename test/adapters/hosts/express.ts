/** Express 5, with a route of its own beside the handler and a body parser in front of both. */
import { createServer } from 'node:http'
import express from 'express'
import { toExpressMiddleware } from '../../../src/adapters/express.js'
import { subject } from '../subject.js'
import { listen } from './listen.js'

const app = express()
app.use(toExpressMiddleware(subject))
app.get('/hosts-own', (_, res) => void res.send('own'))
listen(createServer(app))
