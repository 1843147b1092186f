/* SPDX-License-Identifier: Apache-2.0 */
/* Time goes from left to right. The waveform has a line from the lowest to the highest sample for
 * each column of the plot; the probabilities are steps, one for each window. */
#include "speech_figure.h"

#include <math.h>
#include <stdio.h>

#include "vad.h"

#define WIDTH 1000
#define HEIGHT 320
#define LEFT 48
#define RIGHT 984
#define TOP 52
#define BOTTOM 284
#define COLUMNS (RIGHT - LEFT)
#define WAVE_COLOUR "#9aa5b1"
#define PROBABILITY_COLOUR "#c2410c"
#define SPEECH_COLOUR "#16a34a"

static double sound_seconds(const speech_figure *figure)
{
    return (double)figure->sound->count / WAV_RATE;
}

static double x_of(const speech_figure *figure, double seconds)
{
    const double fraction = fmin(seconds / sound_seconds(figure), 1);
    return LEFT + fraction * COLUMNS;
}

static double y_of(double probability)
{
    return BOTTOM - probability * (BOTTOM - TOP);
}

/* Of a sample relative to the loudest one. */
static double y_of_sample(double sample, double loudest)
{
    return (TOP + BOTTOM) / 2.0 - sample / loudest * 0.48 * (BOTTOM - TOP);
}

static void draw_text(FILE *file, double x, double y, const char *anchor, const char *colour,
                      const char *text)
{
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\">%s</text>\n", x, y,
            anchor, colour, text);
}

static void draw_line(FILE *file, double x1, double y1, double x2, double y2, const char *style)
{
    fprintf(file, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#475569\" %s/>\n",
            x1, y1, x2, y2, style);
}

static void draw_segments(FILE *file, const speech_figure *figure)
{
    for (size_t i = 0; i < figure->segment_count; i++) {
        const speech_segment *segment = &figure->segments[i];
        const double left = x_of(figure, (double)segment->first * VAD_WINDOW_SECONDS);
        const double right = x_of(figure, (double)segment->end * VAD_WINDOW_SECONDS);
        fprintf(file,
                "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"" SPEECH_COLOUR
                "\" fill-opacity=\"0.14\"/>\n",
                left, TOP, right - left, BOTTOM - TOP);
    }
}

static void draw_waveform(FILE *file, const wav_sound *sound)
{
    double loudest = 1e-9; /* silence is a line */
    for (size_t i = 0; i < sound->count; i++) loudest = fmax(loudest, fabsf(sound->samples[i]));
    fprintf(file, "<path fill=\"none\" stroke=\"" WAVE_COLOUR "\" d=\"");
    for (size_t column = 0; column < COLUMNS; column++) {
        const size_t first = column * sound->count / COLUMNS;
        const size_t end = (column + 1) * sound->count / COLUMNS;
        float lowest = sound->samples[first];
        float highest = lowest;
        for (size_t i = first; i < end; i++) {
            lowest = fminf(lowest, sound->samples[i]);
            highest = fmaxf(highest, sound->samples[i]);
        }
        fprintf(file, "M%.1f %.1fV%.1f", LEFT + (double)column + 0.5,
                y_of_sample((double)highest, loudest), y_of_sample((double)lowest, loudest) + 0.5);
    }
    fprintf(file, "\"/>\n");
}

static void draw_probabilities(FILE *file, const speech_figure *figure)
{
    fprintf(file,
            "<path fill=\"none\" stroke=\"" PROBABILITY_COLOUR "\" stroke-width=\"1.8\" d=\"");
    for (size_t i = 0; i < figure->window_count; i++) {
        const double begin = x_of(figure, (double)i * VAD_WINDOW_SECONDS);
        const double end = x_of(figure, (double)(i + 1) * VAD_WINDOW_SECONDS);
        fprintf(file, "%c%.1f %.1fH%.1f", i == 0 ? 'M' : 'L', begin,
                y_of((double)figure->probabilities[i]), end);
    }
    fprintf(file, "\"/>\n");
}

static void draw_axes(FILE *file, const speech_figure *figure)
{
    static const char grey[] = "#475569";
    draw_line(file, LEFT, BOTTOM, RIGHT, BOTTOM, "");
    draw_line(file, LEFT, TOP, LEFT, BOTTOM, "");
    draw_line(file, LEFT, y_of((double)SPEECH_BEGINS), RIGHT, y_of((double)SPEECH_BEGINS),
              "stroke-dasharray=\"6 4\"");
    draw_line(file, LEFT, y_of((double)SPEECH_ENDS), RIGHT, y_of((double)SPEECH_ENDS),
              "stroke-dasharray=\"2 4\"");
    const double marks[] = {0, (double)SPEECH_ENDS, (double)SPEECH_BEGINS, 1};
    char text[32];
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        snprintf(text, sizeof text, "%g", round(marks[i] * 100) / 100);
        draw_text(file, LEFT - 6, y_of(marks[i]) + 4, "end", grey, text);
    }
    const int step = sound_seconds(figure) > 20 ? 5 : 1;
    for (int second = 0; second <= sound_seconds(figure); second += step) {
        const double x = x_of(figure, second);
        draw_line(file, x, BOTTOM, x, BOTTOM + 5, "");
        snprintf(text, sizeof text, "%d s", second);
        draw_text(file, x, BOTTOM + 20, "middle", grey, text);
    }
}

static void draw_legend(FILE *file)
{
    draw_text(file, LEFT, 30, "start", PROBABILITY_COLOUR, "probability of speech");
    draw_text(file, LEFT + 160, 30, "start", "#64748b", "waveform");
    draw_text(file, LEFT + 246, 30, "start", SPEECH_COLOUR, "speech found");
}

static void draw_figure(FILE *file, const speech_figure *figure)
{
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"13\">\n"
            "<title>Probability of speech over the waveform</title>\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    draw_segments(file, figure);
    draw_waveform(file, figure->sound);
    draw_axes(file, figure);
    draw_probabilities(file, figure);
    draw_legend(file);
    fprintf(file, "</svg>\n");
}

bool speech_figure_write(const char *path, const speech_figure *figure)
{
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        perror(path);
        return false;
    }
    draw_figure(file, figure);
    bool is_written = ferror(file) == 0;
    is_written = fclose(file) == 0 && is_written;
    if (!is_written) fprintf(stderr, "%s: cannot be written\n", path);
    return is_written;
}
