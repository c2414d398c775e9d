import type { Answer } from './answer.ts'
import { type Api, type Body, freshId, listIn, messageOf, textIn } from './api.ts'
import { type Conversation, callId, type Entry, spokenWords, stepOf } from './conversation.ts'

const STATUSES: Record<number, string> = { 401: 'UNAUTHENTICATED', 403: 'PERMISSION_DENIED', 429: 'RESOURCE_EXHAUSTED' }
const PATH = /models\/([^:]+):(stream)?generateContent$/i

/** Gemini generateContent and streamGenerateContent. */
export const gemini: Api = {
  name: 'gemini',
  path: PATH,
  read(body, path) {
    const [, model = '', streamed] = PATH.exec(path) ?? []
    const declared = listIn(body.tools).flatMap((tool) => listIn(tool.functionDeclarations))
    return {
      entries: listIn(body.contents).flatMap(entriesOf),
      tools: declared.map((tool) => String(tool.name)),
      model,
      stream: streamed !== undefined,
      schema: schemaOf(body.generationConfig),
    }
  },
  whole: (answer, conversation) => piece(partsOf(answer), answer, conversation),
  // The text first: a connection that is cut was in the middle of something.
  stream: (answer, conversation) => {
    const parts = partsOf(answer)
    const [first, rest] = parts.length > 1 ? [parts.slice(0, 1), parts.slice(1)] : [[], parts]
    return [{ data: opening(first, conversation) }, { data: piece(rest, answer, conversation) }]
  },
  refusal: (fault) => ({ error: { code: fault.status, message: messageOf(fault), status: STATUSES[fault.status] ?? 'UNAVAILABLE' } }),
}

function schemaOf(config: Body) {
  if (config?.responseMimeType !== 'application/json') return undefined
  return config.responseJsonSchema ?? config.responseSchema ?? { type: 'object' }
}

function entriesOf({ role, parts }: Body): Entry[] {
  const all = listIn(parts)
  const text = spokenWords(textIn(all.filter((part) => typeof part.text === 'string' && part.thought !== true)))
  const words: Entry[] = text ? [{ from: role === 'model' ? 'model' : 'person', text }] : []
  return [...words, ...all.flatMap(entryOf)]
}

function entryOf({ functionCall, functionResponse }: Body): Entry[] {
  if (functionCall) return [{ from: 'call', step: stepOf(functionCall.id) }]
  return functionResponse ? [{ from: 'tool', text: resultIn(functionResponse.response) }] : []
}

function resultIn(response: Body): string {
  return typeof response?.output === 'string' ? response.output : JSON.stringify(response ?? '')
}

function partsOf({ think, text, calls, step }: Answer): Body[] {
  return [
    ...(think ? [{ text: think, thought: true }] : []),
    ...(text ? [{ text }] : []),
    ...calls.map(({ name, args }, i) => ({ functionCall: { id: callId(step, i), name, args }, thoughtSignature: 'c2NyaXB0ZWQ=' })),
  ]
}

function opening(parts: Body[], { model }: Conversation) {
  return { candidates: [{ content: { role: 'model', parts }, index: 0 }], modelVersion: model, responseId: freshId('gemini-') }
}

function piece(parts: Body[], { usage }: Answer, { model }: Conversation) {
  return {
    candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0 }],
    usageMetadata: {
      promptTokenCount: usage.input,
      candidatesTokenCount: usage.output,
      cachedContentTokenCount: usage.cached ?? 0,
      totalTokenCount: usage.input + usage.output,
    },
    modelVersion: model,
    responseId: freshId('gemini-'),
  }
}
