/** Passes a handler of the package where each host expects one. */
import { createServer } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import express from 'express'
import Fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { toExpressMiddleware } from 'relayscope/express'
import { toHonoHandler } from 'relayscope/hono'
import { startNodeServer, toNodeHandler } from 'relayscope/node'
import { router } from './portable.js'

const handler = toNodeHandler((request, { remoteAddress }) => new Response(request.url + (remoteAddress ?? '')))

export const servers = [createServer(handler), createSecureServer({}, handler), createServer(toNodeHandler(router))]
export const fastify = Fastify({ serverFactory: (own) => createServer((q, s) => handler(q, s, () => own(q, s))) })
express().use(toExpressMiddleware(router)).use('/ops', toExpressMiddleware(router))
express.Router().all('/ops', toExpressMiddleware(router))
new Koa().use((ctx) => handler(ctx.req, ctx.res))
new Hono().use(toHonoHandler(router)).all('/ops/*', toHonoHandler(router))
export const own = startNodeServer(router)
