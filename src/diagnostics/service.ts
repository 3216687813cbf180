/** The routes about the router itself: its index, its OpenAPI document, its capabilities. */
import { Capabilities } from '../contract/capabilities.js'
import { JsonRecord } from '../contract/json.js'
import { diagnosticsRoute, routesAbout } from './route.js'
import { OPENAPI_PATH, ServiceIndex } from './service-index.js'

export const SERVICE_ROUTES = routesAbout('service', 'The router itself.', [
  diagnosticsRoute({
    path: '/',
    summary: 'The routes of this router',
    needs: [],
    narrows: true,
    response: ServiceIndex,
    read: (_inspectors, _input, { service }) => service.index,
  }),
  diagnosticsRoute({
    path: OPENAPI_PATH,
    summary: 'This document',
    needs: [],
    narrows: true,
    response: JsonRecord,
    read: (_inspectors, _input, { service }) => service.openApi(),
  }),
  diagnosticsRoute({
    path: '/capabilities',
    summary: 'What can be asked; not a readiness check',
    needs: [],
    narrows: true,
    response: Capabilities,
    read: (_inspectors, _input, { service }) => service.capabilities,
  }),
])
