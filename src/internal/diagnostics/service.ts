/** The routes about the router itself: its index, its OpenAPI document, its capabilities. */
import { Capabilities, capabilitiesOf } from '../contract/capabilities.js'
import { VERSION } from '../version.js'
import { diagnosticsRoute, OPENAPI_PATH, OpenApiDocument, routeSection, ServiceIndex } from './route.js'

export const SERVICE_ROUTES = routeSection('service', 'The router itself.', [
  diagnosticsRoute({
    path: '/',
    operationId: 'getIndex',
    summary: 'The routes of this router',
    requires: [],
    scopable: true,
    response: ServiceIndex,
    example: {
      service: 'relayscope',
      version: VERSION,
      deployment_id: 'relay-eu',
      mode: 'shared_store',
      dashboard_path: '/dashboard',
      openapi_path: OPENAPI_PATH,
      routes: [
        {
          method: 'GET',
          path: '/connections',
          summary: 'Connections, newest registrations last',
          capability: 'registry',
          available: true,
        },
      ],
    },
    read: (_inspectors, _input, { service }) => service.index,
  }),
  diagnosticsRoute({
    path: OPENAPI_PATH,
    operationId: 'getOpenApiDocument',
    summary: 'This document',
    requires: [],
    scopable: true,
    response: OpenApiDocument,
    example: { openapi: '3.1.0', info: { title: 'relayscope diagnostics', version: VERSION }, paths: {} },
    read: (_inspectors, _input, { service }) => service.openApi(),
  }),
  diagnosticsRoute({
    path: '/capabilities',
    operationId: 'getCapabilities',
    summary: 'The capabilities of the deployment; not a readiness check',
    requires: [],
    scopable: true,
    response: Capabilities,
    example: {
      ...capabilitiesOf({}),
      registry: true,
      history: true,
      extensions: { deployment_id: 'relay-eu', mode: 'shared_store' },
    },
    read: (_inspectors, _input, { service }) => service.capabilities,
  }),
])
