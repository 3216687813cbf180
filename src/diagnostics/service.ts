/** The routes about the router itself: its index, its OpenAPI document, its capabilities. */
import { Capabilities } from '../contract/inspectors.js'
import { JsonRecord } from '../contract/json.js'
import { type DiagnosticsRoute, diagnosticsRoute } from './route.js'
import { OPENAPI_PATH, ServiceIndex } from './service-index.js'

export const SERVICE_ROUTES: readonly DiagnosticsRoute[] = [
  diagnosticsRoute({
    path: '/',
    summary: 'The routes of this router',
    needs: [],
    response: ServiceIndex,
    ask: (_inspectors, _input, { service }) => service.index,
  }),
  diagnosticsRoute({
    path: OPENAPI_PATH,
    summary: 'This document',
    needs: [],
    response: JsonRecord,
    ask: (_inspectors, _input, { service }) => service.openApi(),
  }),
  diagnosticsRoute({
    path: '/capabilities',
    summary: 'What can be asked; not a readiness check',
    needs: [],
    response: Capabilities,
    ask: (_inspectors, _input, { service }) => service.capabilities,
  }),
]
