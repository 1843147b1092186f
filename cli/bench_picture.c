/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_picture.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define WIDTH 640
#define LEFT 70 /* of the axes */
#define RIGHT 610
#define PLOT_HEIGHT 220
#define TITLE_Y 26
#define LEGEND_Y 48 /* of the first line's label */
#define LEGEND_STEP 18
#define BELOW 50 /* of the plot: numbers and name of the axis */

static const char *const colours[] = {"#0b62a4", "#c2410c", "#15803d", "#7c3aed",
                                      "#b45309", "#0e7490", "#be185d", "#374151"};

/* ---- points ---- */

static sp_status fail_file(const bench_picture *self, int error)
{
    return fail(SP_IO, "--svg %s: it cannot be written: %s", self->path, show_error(error).text);
}

sp_status bench_picture_open(bench_picture *self, const char *path)
{
    *self = (bench_picture){.path = path, .is_new = !file_exists(path)};
    self->file = fopen(path, "ae");
    return self->file != NULL ? SP_OK : fail_file(self, errno);
}

void bench_picture_add_line(bench_picture *self, const char *label)
{
    if (self->line_count == PICTURE_MAX_LINES) return;
    self->labels[self->line_count++] = show_name(label);
}

void bench_picture_add_point(bench_picture *self, uint32_t threads)
{
    if (self->point_count == PICTURE_MAX_POINTS) return;
    self->threads[self->point_count++] = threads;
}

void bench_picture_set_rate(bench_picture *self, uint32_t line, double per_second)
{
    if (self->point_count == 0 || line >= self->line_count) return;
    self->rates[line][self->point_count - 1] = per_second;
}

/* ---- scales ---- */

typedef struct scales {
    double step, most; /* of the vertical axis: the distance of its lines, and its end */
    double top, bottom;
    uint32_t point_count;
} scales;

/* 1, 2 or 5 times a power of ten, so that at most six lines reach the highest rate. */
static double step_of(double most)
{
    const double power = pow(10, floor(log10(most / 6)));
    for (int i = 0; i < 3; i++) {
        static const int times[] = {1, 2, 5};
        if (power * times[i] * 6 >= most) return power * times[i];
    }
    return power * 10;
}

static scales scales_of(const bench_picture *self)
{
    double most = 0;
    for (uint32_t line = 0; line < self->line_count; line++) {
        for (uint32_t i = 0; i < self->point_count; i++) most = fmax(most, self->rates[line][i]);
    }
    scales out = {.step = most > 0 ? step_of(most) : 1, .point_count = self->point_count};
    out.most = out.step * fmax(1, ceil(most / out.step));
    out.top = LEGEND_Y + LEGEND_STEP * (double)self->line_count + 12;
    out.bottom = out.top + PLOT_HEIGHT;
    return out;
}

/* The numbers of threads are at equal distances. */
static double x_of(const scales *scale, uint32_t point)
{
    return LEFT + (RIGHT - LEFT) * ((double)point + 0.5) / scale->point_count;
}

static double y_of(const scales *scale, double rate)
{
    return scale->bottom - PLOT_HEIGHT * rate / scale->most;
}

/* ---- text ---- */

/* With three digits: 8.14, 327, 41.6k, 1.2M. */
static void print_rate(FILE *out, double rate)
{
    if (rate < 999.5) fprintf(out, "%.3g", rate);
    else if (rate < 999500) fprintf(out, "%.3gk", rate / 1e3);
    else fprintf(out, "%.3gM", rate / 1e6);
}

/* U+FFFE and U+FFFF, which are no characters of XML 1.0 (section 2.2). */
static bool is_noncharacter(const char *text)
{
    return strncmp(text, "\xef\xbf\xbe", 3) == 0 || strncmp(text, "\xef\xbf\xbf", 3) == 0;
}

/* Without control characters, which show_name replaces; what is not UTF-8 or XML as U+FFFD. */
static void print_escaped(FILE *out, const char *text)
{
    for (const char *at = text; *at != '\0';) {
        const size_t length = utf8_length(at);
        if (*at == '&') fputs("&amp;", out);
        else if (*at == '<') fputs("&lt;", out);
        else if (*at == '>') fputs("&gt;", out);
        else if (length == 0 || is_noncharacter(at)) fputs("&#xfffd;", out);
        else fwrite(at, 1, length, out);
        at += length > 0 ? length : 1;
    }
}

/* ---- the picture ---- */

static void print_head(const bench_picture *self, FILE *out)
{
    const scales scale = scales_of(self);
    const double height = scale.bottom + BELOW;
    static const char title[] = "Runs per second by calling threads";
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" width=\"%d\" "
            "height=\"%.0f\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#1f2937\">\n",
            WIDTH, height, WIDTH, height);
    fprintf(out, "<title>%s</title>\n<rect width=\"%d\" height=\"%.0f\" fill=\"#ffffff\"/>\n",
            title, WIDTH, height);
    fprintf(out, "<text x=\"20\" y=\"%d\" font-size=\"15\" font-weight=\"bold\">%s</text>\n",
            TITLE_Y, title);
}

static void print_legend(const bench_picture *self, FILE *out)
{
    for (uint32_t line = 0; line < self->line_count; line++) {
        const uint32_t y = LEGEND_Y + LEGEND_STEP * line;
        fprintf(out, "<path d=\"M20 %uh22\" stroke=\"%s\" stroke-width=\"2.5\"/>\n", y - 4,
                colours[line % 8]);
        fprintf(out, "<text x=\"48\" y=\"%u\" fill=\"%s\">", y, colours[line % 8]);
        print_escaped(out, self->labels[line].text);
        fputs("</text>\n", out);
    }
}

static void print_axes(const bench_picture *self, const scales *scale, FILE *out)
{
    for (int i = 0; i <= (int)lround(scale->most / scale->step); i++) {
        const double y = y_of(scale, i * scale->step);
        fprintf(out, "<path d=\"M%d %.1fH%d\" stroke=\"#d1d5db\"/>\n", LEFT, y, RIGHT);
        fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", LEFT - 6, y + 4);
        print_rate(out, i * scale->step);
        fputs("</text>\n", out);
    }
    for (uint32_t i = 0; i < self->point_count; i++) {
        fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%u</text>\n",
                x_of(scale, i), scale->bottom + 18, self->threads[i]);
    }
    fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"middle\">threads</text>\n",
            (LEFT + RIGHT) / 2, scale->bottom + 36);
}

/* Of one line, or of two, the rates are written at the points: outside of the two lines. */
static void print_label(const bench_picture *self, uint32_t line, uint32_t point, double x,
                        double y, FILE *out)
{
    if (self->line_count > 2) return;
    const double rate = self->rates[line][point];
    const bool is_above = self->line_count < 2 || rate > self->rates[1 - line][point] ||
                          (line == 0 && rate >= self->rates[1][point]);
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" font-size=\"11\" fill=\"%s\">",
            x, is_above ? y - 8 : y + 16, colours[line]);
    print_rate(out, rate);
    fputs("</text>\n", out);
}

static void print_line(const bench_picture *self, const scales *scale, uint32_t line, FILE *out)
{
    const char *colour = colours[line % 8];
    fputs("<polyline points=\"", out);
    for (uint32_t i = 0; i < self->point_count; i++) {
        fprintf(out, "%s%.1f,%.1f", i > 0 ? " " : "", x_of(scale, i),
                y_of(scale, self->rates[line][i]));
    }
    fprintf(out, "\" fill=\"none\" stroke=\"%s\" stroke-width=\"2.5\"/>\n", colour);
    for (uint32_t i = 0; i < self->point_count; i++) {
        const double x = x_of(scale, i), y = y_of(scale, self->rates[line][i]);
        fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\"/>\n", x, y, colour);
        print_label(self, line, i, x, y, out);
    }
}

static void print_picture(const bench_picture *self, FILE *out)
{
    const scales scale = scales_of(self);
    print_head(self, out);
    print_legend(self, out);
    print_axes(self, &scale, out);
    for (uint32_t line = 0; line < self->line_count; line++) print_line(self, &scale, line, out);
    fputs("</svg>\n", out);
}

static int picture_write(const bench_picture *self)
{
    errno = 0;
    if (ftruncate(fileno(self->file), 0) != 0 && errno != EINVAL)
        return errno; /* EINVAL: a device */
    print_picture(self, self->file);
    return fflush(self->file) == 0 ? 0 : errno;
}

sp_status bench_picture_close(bench_picture *self)
{
    int error = 0;
    if (self->file == NULL) return SP_OK;
    if (self->point_count > 0) error = picture_write(self);
    if (fclose(self->file) != 0 && error == 0) error = errno;
    self->file = NULL;
    if (self->point_count == 0 && self->is_new) unlink(self->path);
    return error == 0 ? SP_OK : fail_file(self, error);
}
