import { z } from 'zod'
import { CODES, type Code, type ErrorBody } from '../kernel/error.ts'
import type { Registry } from '../kernel/registry.ts'
import { EventView } from '../kernel/schema.ts'
import type { Tool } from '../kernel/tool.ts'
import { type RoutedDialect, routed, statusOf } from './execute.ts'

type Json = Record<string, unknown>

/** A new field of an error does not compile until it is described here. */
export const ERROR_FIELDS = {
  code: { type: 'string', enum: Object.keys(CODES), description: 'What kind of refusal it is' },
  message: { type: 'string', description: 'What went wrong, for a reader' },
  hint: { type: 'string', description: 'What to do next' },
  next_tool: { type: 'string', description: 'The tool that helps' },
  next_arguments: { type: 'object', description: 'Arguments for it' },
  suggestions: { type: 'array', items: { type: 'string' }, description: 'Names that may have been meant, or ways on' },
  details: { type: 'object', description: 'Facts for a program, such as which field does not fit' },
} satisfies Record<keyof ErrorBody, { type: string; description: string } & Json>

/** What the door or a tool can say to any call. */
const ANY_CODE = Object.keys(CODES) as Code[]
const GET_CODES: Code[] = ['UNAUTHENTICATED', 'AUTH_STALE_TOKEN', 'PERMISSION_DENIED', 'RATE_LIMITED', 'TRANSIENT_ERROR', 'INTERNAL_ERROR']

/** The HTTP surface as OpenAPI 3.1, whose schemas are JSON Schema as our tools have it. */
export function openApi(registry: Registry, version: string) {
  const { capabilities } = registry
  const tools = capabilities.flatMap(({ name, tools }) => tools.filter((tool) => !tool.internal).map((tool) => ({ tag: name, tool })))
  return {
    openapi: '3.1.0',
    info: {
      title: 'Signalbox',
      version,
      description: 'Coordinator for coding agents. Every tool is a POST with its arguments as a JSON object.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: 'http://127.0.0.1:3001' }],
    security: [{ token: [] }],
    tags: [...new Set(tools.map(({ tag }) => tag)), 'daemon'].map((name) => ({ name })),
    paths: {
      ...Object.fromEntries(tools.map(({ tag, tool }) => [`/api/tools/${tool.name}`, { post: toolOperation(tag, tool) }])),
      ...daemonPaths(routed(registry)),
    },
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer', description: 'The token of a person or an agent' } },
      schemas: {
        Error: {
          type: 'object',
          properties: {
            ok: { const: false },
            error: { type: 'object', properties: ERROR_FIELDS, required: ['code', 'message'], additionalProperties: false },
          },
          required: ['ok', 'error'],
          additionalProperties: false,
        },
        Event: schemaOf(EventView),
      },
      responses: Object.fromEntries([...byStatus(ANY_CODE)].map(([status, codes]) => [`E${status}`, errorResponse(codes)])),
      parameters: {
        lane: {
          name: 'lane',
          in: 'query',
          schema: { type: 'string', enum: ['admin', 'default'], default: 'admin' },
          description: 'A person may ask for less than the token gives',
        },
        dialect: {
          name: 'dialect',
          in: 'query',
          schema: { type: 'string' },
          description: "Another system's names and shapes; then answers have its shape too",
        },
        actFor: {
          name: 'Signalbox-Act-For',
          in: 'header',
          schema: { type: 'string' },
          description: 'Id or handle of the agent for which a person acts; both are recorded',
        },
      },
    },
  }
}

function toolOperation(tag: string, tool: Tool): Json {
  const { name, title, description, impact, profile, by, inputJson, outputJson, example } = tool
  const content = { 'application/json': { schema: inputJson, example } }
  return {
    operationId: name,
    tags: [tag],
    summary: title,
    description,
    'x-signalbox': { impact, profile, by },
    parameters: ['lane', 'dialect', 'actFor'].map((parameter) => ({ $ref: `#/components/parameters/${parameter}` })),
    requestBody: { required: true, content },
    responses: { 200: jsonResponse('Done', answer({ result: outputJson })), ...refusals(ANY_CODE) },
  }
}

function daemonPaths(dialects: RoutedDialect[]): Json {
  const get = (operationId: string, summary: string, more: Json) => ({ get: { operationId, tags: ['daemon'], summary, ...more } })
  const query = (name: string, description: string) => ({ name, in: 'query', schema: { type: 'string' }, description })
  return {
    '/api/tools': get('listTools', 'The tools that this token may call, with their schemas', {
      parameters: ['lane', 'dialect'].map((parameter) => ({ $ref: `#/components/parameters/${parameter}` })),
      responses: {
        200: jsonResponse('The tools', answer({ tools: { type: 'array', items: LISTED_TOOL } })),
        ...refusals([...GET_CODES, 'INVALID_INPUT']),
      },
    }),
    '/api/events': get('followEvents', 'What happens from now on, or from a cursor on, as server-sent events', {
      parameters: [
        { name: 'Last-Event-ID', in: 'header', schema: { type: 'string' }, description: 'Cursor to go on after' },
        query('after', 'The same, for those who cannot set a header'),
        query('types', 'Like `task.moved,project.*`'),
        query('project', 'Id or handle'),
        query('task', 'Id or handle'),
      ],
      responses: {
        200: {
          description:
            'Never ends. `id` is the cursor, `event` the type, `data` an Event (see the schemas) as JSON. Comments in between keep the connection alive.',
          content: { 'text/event-stream': { schema: { type: 'string' } } },
        },
        ...refusals([...GET_CODES, 'INVALID_CURSOR', 'RESOURCE_NOT_FOUND']),
      },
    }),
    ...Object.fromEntries(dialects.map((dialect) => [dialect.route.path, { post: routeOperation(dialect) }])),
    '/api/openapi.json': get('describe', 'This description', {
      responses: { 200: jsonResponse('OpenAPI 3.1', { type: 'object' }), ...refusals(GET_CODES) },
    }),
    '/healthz': get('health', 'Whether the daemon is well; needs no token', {
      security: [],
      responses: { 200: jsonResponse('It answers', HEALTH), ...refusals(['PERMISSION_DENIED', 'INTERNAL_ERROR']) },
    }),
    '/metrics': get('metrics', "Counts and gauges in Prometheus' text format", {
      responses: {
        200: { description: 'The metrics', content: { 'text/plain': { schema: { type: 'string' } } } },
        ...refusals(GET_CODES),
      },
    }),
  }
}

function routeOperation(dialect: RoutedDialect): Json {
  const { operation, schemas } = dialect.route
  const statuses = new Set(ANY_CODE.map((code) => statusOf(dialect, code)))
  return {
    operationId: operation,
    tags: ['daemon'],
    summary: `A tool by its name in the dialect \`${dialect.name}\`, in that document's envelope`,
    parameters: [{ $ref: '#/components/parameters/lane' }],
    requestBody: { required: true, content: { 'application/json': { schema: schemas.request } } },
    responses: {
      200: jsonResponse('Done', schemas.done),
      ...Object.fromEntries([...statuses].map((status) => [status, jsonResponse('Refused or failed', schemas.refused)])),
    },
  }
}

const LISTED_TOOL = {
  type: 'object',
  properties: {
    name: { type: 'string' },
    title: { type: 'string' },
    description: { type: 'string' },
    impact: { type: 'string', enum: ['read', 'write', 'destructive'] },
    profile: { type: 'string' },
    input: { type: 'object', description: 'JSON Schema of the arguments' },
    output: { type: 'object', description: 'JSON Schema of the result; not on a dialect' },
  },
  required: ['name', 'title', 'description', 'impact', 'profile', 'input'],
  additionalProperties: false,
}

const HEALTH = {
  type: 'object',
  properties: { ok: { type: 'boolean' }, version: { type: 'string' }, uptime_seconds: { type: 'number' } },
  required: ['ok', 'version', 'uptime_seconds'],
  additionalProperties: false,
}

function answer(properties: Json): Json {
  return {
    type: 'object',
    properties: { ok: { const: true }, ...properties },
    required: ['ok', ...Object.keys(properties)],
    additionalProperties: false,
  }
}

function jsonResponse(description: string, schema: Json): Json {
  return { description, content: { 'application/json': { schema } } }
}

function refusals(codes: Code[]): Json {
  return Object.fromEntries([...byStatus(codes).keys()].map((status) => [status, { $ref: `#/components/responses/E${status}` }]))
}

function errorResponse(codes: Code[]): Json {
  const description = codes.map((code) => `${code}: ${CODES[code].meaning}`).join('\n\n')
  const only = { properties: { error: { properties: { code: { enum: codes } } } } }
  return jsonResponse(description, { allOf: [{ $ref: '#/components/schemas/Error' }, only] })
}

function byStatus(codes: Code[]): Map<number, Code[]> {
  const statuses = [...new Set(codes.map((code) => CODES[code].status as number))].sort((a, b) => a - b)
  return new Map(statuses.map((status) => [status, codes.filter((code) => CODES[code].status === status)]))
}

function schemaOf(schema: z.ZodType): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'output', target: 'draft-2020-12' }) as Json
  return rest
}
